// Beginnings: numbers by beginnings of texts, found in one walk over a text.

/// A number for each of some beginnings of texts, and for some whole texts. A look-up allocates
/// nothing, and takes as long as the text is, however long the list.
struct Beginnings {
  /// Ends a whole text. No text contains it.
  static let end = UInt8(ascii: " ")

  // FNV-1a, because it gives the hash of each beginning of a text in one walk. Its collisions are
  // easily made, so what is found is compared.
  private var byHash: [UInt64: [(bytes: [UInt8], number: Int)]] = [:]
  /// A bit for each hash of the list, and few others, because most look-ups find nothing.
  private var bits: [UInt64] = []
  /// Hashes that were removed since the bits were set, whose bits are left.
  private var removed = 0

  var isEmpty: Bool { byHash.isEmpty }

  /// The number of a beginning, or with `end` behind it of a whole text; 0 for none.
  subscript(bytes: [UInt8]) -> Int {
    get { byHash[Self.hash(bytes)]?.first { $0.bytes == bytes }?.number ?? 0 }
    set {
      let hash = Self.hash(bytes)
      var alike = byHash[hash] ?? []
      alike.removeAll { $0.bytes == bytes }
      if newValue != 0 { alike.append((bytes, newValue)) }
      byHash[hash] = alike.isEmpty ? nil : alike
      if newValue == 0 { removed += 1 }
      if byHash.count > 4 * bits.count {
        setBits(words: max(2 * bits.count, 16))
      } else if removed > byHash.count {
        setBits(words: bits.count)
      } else if newValue != 0 {
        mark(hash)
      }
    }
  }

  /// Returns the greatest number of the beginnings of a text; 0 for none.
  func greatest(of text: some Sequence<UInt8>) -> Int {
    guard !isEmpty else { return 0 }
    var greatest = 0
    var length = 0
    var hash = Self.seed
    func look(isWhole: Bool) {
      let (word, bit) = place(of: hash)
      guard bits[word] & bit != 0, let alike = byHash[hash] else { return }
      for (bytes, number) in alike
      where number > greatest && bytes.count == length && isWhole == (bytes.last == Self.end)
        && text.starts(with: bytes.dropLast(isWhole ? 1 : 0))
      {
        greatest = number
      }
    }
    look(isWhole: false)
    for byte in text {
      hash = Self.hash(hash, byte)
      length += 1
      look(isWhole: false)
    }
    hash = Self.hash(hash, Self.end)
    length += 1
    look(isWhole: true)
    return greatest
  }

  private mutating func setBits(words: Int) {
    removed = 0
    bits = Array(repeating: 0, count: words)
    for hash in byHash.keys { mark(hash) }
  }

  private mutating func mark(_ hash: UInt64) {
    let (word, bit) = place(of: hash)
    bits[word] |= bit
  }

  /// The bit of a hash. The number of words is a power of two.
  private func place(of hash: UInt64) -> (word: Int, bit: UInt64) {
    (Int(hash >> 6) & (bits.count - 1), 1 << (hash & 63))
  }

  private static let seed: UInt64 = 0xcbf2_9ce4_8422_2325

  private static func hash(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
    (hash ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  private static func hash(_ bytes: [UInt8]) -> UInt64 { bytes.reduce(seed, hash) }
}
