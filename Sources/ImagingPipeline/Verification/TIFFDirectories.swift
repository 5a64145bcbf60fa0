// TIFFDirectories: tells the pages of a TIFF from reduced copies and masks.

import Platform

/// The chain of directories of a TIFF or BigTIFF (TIFF 6.0, section 2).
///
/// A pyramid stores its levels in the same chain as pages. `NewSubfileType` distinguishes them
/// (TIFF 6.0, section 8).
struct TIFFDirectories {
  /// The directories that are not pages, in ascending order. Empty if no directory is a page; then
  /// every directory counts as one.
  private(set) var others: [Int] = []

  /// The maximum number of directories read; every later directory counts as a page.
  private static let maximumRead = 65_536

  /// Reads the chain. An unreadable directory counts as a page, and libtiff decides about it.
  ///
  /// - Parameter count: The number of directories that libtiff counts.
  init(of file: UnsafeRawBufferPointer, count: Int) {
    guard let reader = TIFFReader(file) else { return }
    var place = reader.firstDirectory
    let last = min(count, Self.maximumRead)
    for index in 0..<last {
      guard let directory = place.flatMap({ reader.directory(at: $0) }) else { break }
      if directory.isPartOfPage { others.append(index) }
      place = directory.next
    }
    if others.count == count { others = [] }
  }

  /// Returns how many of `directories` are pages.
  func pages(of directories: Int) -> Int { directories - others.count }

  /// Returns the directory index of a page.
  func directory(ofPage page: Int) -> Int {
    others.reduce(page) { $1 <= $0 ? $0 + 1 : $0 }
  }
}

/// Reads numbers of a TIFF in its byte order, with bounds checks.
private struct TIFFReader {
  /// A directory: the kind of its image, and the offset of the next directory.
  struct Directory {
    /// Whether the image is a reduced copy or a transparency mask of another directory's image.
    let isPartOfPage: Bool
    let next: Int?
  }

  private let bytes: ByteReader
  private let isBigTIFF: Bool

  init?(_ file: UnsafeRawBufferPointer) {
    guard file.count >= 8,
      let order = ["II", "MM"].firstIndex(where: { file.starts(with: $0.utf8) })
    else { return nil }
    bytes = ByteReader(file, order: order == 1 ? .big : .little)
    isBigTIFF = (try? bytes.number(at: 2, width: 2)) == 43
  }

  /// The type code of a 16-bit number; every other type is read as 4 bytes.
  private static let short = 3

  /// The bytes of an offset.
  private var width: Int { isBigTIFF ? 8 : 4 }

  var firstDirectory: Int? { number(at: isBigTIFF ? 8 : 4, width: width) }

  func directory(at place: Int) -> Directory? {
    let (countWidth, entryLength) = isBigTIFF ? (8, 20) : (2, 12)
    guard place > 0, let count = number(at: place, width: countWidth), count <= 65_535 else {
      return nil
    }
    let entries = place + countWidth
    // The value follows the tag, type and count.
    let valuePlace = isBigTIFF ? 12 : 8
    var isPartOfPage = false
    // Tags ascend (TIFF 6.0, section 2), and these two are the lowest.
    for index in 0..<min(count, 4) {
      let entry = entries + index * entryLength
      guard let tag = number(at: entry, width: 2), let type = number(at: entry + 2, width: 2),
        let value = number(at: entry + valuePlace, width: type == Self.short ? 2 : 4)
      else { return nil }
      // NewSubfileType: bit 0 marks a reduced copy, bit 2 a mask. SubfileType (obsolete): 2 marks a
      // reduced copy.
      switch tag {
      case 254: isPartOfPage = value & 0b101 != 0
      case 255: isPartOfPage = isPartOfPage || value == 2
      default: break
      }
    }
    let next = number(at: entries + count * entryLength, width: width)
    return Directory(isPartOfPage: isPartOfPage, next: next == 0 ? nil : next)
  }

  /// Returns a number; `nil` past the end, or if it is larger than any file.
  private func number(at place: Int, width: Int) -> Int? {
    guard let number = try? bytes.number(at: place, width: width) else { return nil }
    return number <= Int.max / 2 ? number : nil
  }
}
