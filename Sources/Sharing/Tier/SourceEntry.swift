// SourceEntry: what Redis has of a shared source.

/// What Redis has of a source: the SHA-256 of its bytes in hexadecimal, their number, and the metadata.
struct SourceEntry: Equatable {
  /// The SHA-256 of the bytes, in hexadecimal.
  let digest: String
  /// The number of the bytes.
  let count: Int
  /// The metadata, as `SourceCoding` has it.
  let metadata: [UInt8]

  init(digest: String, count: Int, metadata: [UInt8]) {
    self.digest = digest
    self.count = count
    self.metadata = metadata
  }

  /// Reads untrusted bytes.
  init?(_ bytes: ArraySlice<UInt8>) {
    let start = bytes.startIndex
    guard bytes.count > 72,
      let digest = String(validating: bytes[start..<start + 64], as: UTF8.self),
      digest.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
    else { return nil }
    let count = bytes[start + 64..<start + 72].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    guard count > 0, let count = Int(exactly: count) else { return nil }
    self.init(digest: digest, count: count, metadata: Array(bytes[(start + 72)...]))
  }

  /// As bytes.
  var bytes: [UInt8] {
    var bytes = Array(digest.utf8)
    withUnsafeBytes(of: UInt64(count).littleEndian) { bytes += $0 }
    return bytes + metadata
  }

  /// The name of the bytes in the store.
  var name: String { Self.name(of: digest) }

  /// The name of bytes in the store.
  static func name(of digest: String) -> String { "s:" + digest }
}
