// TIFFDirectories: which directories of a TIFF are pages of it, and which hold a page again, smaller or as a mask.

/// The chain of directories of a TIFF or BigTIFF (TIFF 6.0, section 2).
///
/// Pyramids keep their levels in the same chain as pages. `NewSubfileType` tells them apart (TIFF 6.0, section 8).
struct TIFFDirectories {
  /// Directories that are no page, in ascending order. Empty where no directory is a page: then each counts as one.
  private(set) var others: [Int] = []

  /// At most this many directories are read; each one behind them counts as a page.
  private static let mostRead = 65_536

  /// Reads the chain. What cannot be read counts as a page: libtiff decides on it.
  ///
  /// - Parameter count: How many directories libtiff counts.
  init(of file: UnsafeRawBufferPointer, count: Int) {
    guard let reader = TIFFReader(file) else { return }
    var place = reader.firstDirectory
    let last = min(count, Self.mostRead)
    for index in 0..<last {
      guard let directory = place.flatMap({ reader.directory(at: $0) }) else { break }
      if directory.isPartOfPage { others.append(index) }
      place = directory.next
    }
    if others.count == count { others = [] }
  }

  /// How many of `directories` are pages.
  func pages(of directories: Int) -> Int { directories - others.count }

  /// The directory of a page.
  func directory(ofPage page: Int) -> Int {
    others.reduce(page) { $1 <= $0 ? $0 + 1 : $0 }
  }
}

/// Numbers of a TIFF, in its own byte order; none from past its end.
private struct TIFFReader {
  /// One directory: what kind of image it has, and where the next one is.
  struct Directory {
    /// A smaller copy or a transparency mask of another directory's image.
    let isPartOfPage: Bool
    let next: Int?
  }

  private let file: UnsafeRawBufferPointer
  private let isBigEndian: Bool
  private let isBigTIFF: Bool

  init?(_ file: UnsafeRawBufferPointer) {
    guard file.count >= 8,
      let order = ["II", "MM"].firstIndex(where: { file.starts(with: $0.utf8) })
    else { return nil }
    self.file = file
    isBigEndian = order == 1
    isBigTIFF = file[isBigEndian ? 3 : 2] == 43
  }

  /// The type of a number of 16 bits; all others are wider here.
  private static let short = 3

  /// Bytes of an offset.
  private var width: Int { isBigTIFF ? 8 : 4 }

  var firstDirectory: Int? { number(at: isBigTIFF ? 8 : 4, width: width) }

  func directory(at place: Int) -> Directory? {
    let (countWidth, entryLength) = isBigTIFF ? (8, 20) : (2, 12)
    guard place > 0, let count = number(at: place, width: countWidth), count <= 65_535 else {
      return nil
    }
    let entries = place + countWidth
    // Offsets of values lie behind tag, type and count.
    let valuePlace = isBigTIFF ? 12 : 8
    var isPartOfPage = false
    // Tags ascend (TIFF 6.0, section 2), and these two are the lowest.
    for index in 0..<min(count, 4) {
      let entry = entries + index * entryLength
      guard let tag = number(at: entry, width: 2), let type = number(at: entry + 2, width: 2),
        let value = number(at: entry + valuePlace, width: type == Self.short ? 2 : 4)
      else { return nil }
      // NewSubfileType: bit 0 a smaller copy, bit 2 a mask. SubfileType (obsolete): 2 a smaller copy.
      switch tag {
      case 254: isPartOfPage = value & 0b101 != 0
      case 255: isPartOfPage = isPartOfPage || value == 2
      default: break
      }
    }
    let next = number(at: entries + count * entryLength, width: width)
    return Directory(isPartOfPage: isPartOfPage, next: next == 0 ? nil : next)
  }

  /// `nil` past the end, and for what is larger than any file.
  private func number(at place: Int, width: Int) -> Int? {
    guard place >= 0, place <= file.count - width else { return nil }
    let bytes = file[place..<place + width]
    let number: UInt64 =
      isBigEndian
      ? bytes.reduce(0) { $0 << 8 | UInt64($1) }
      : bytes.reversed().reduce(0) { $0 << 8 | UInt64($1) }
    return number <= UInt64(Int.max / 2) ? Int(number) : nil
  }
}
