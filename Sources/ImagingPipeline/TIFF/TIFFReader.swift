// TIFFReader: reads directories and tags of a TIFF or BigTIFF (TIFF 6.0, section 2).

import Platform

/// Reads numbers of a TIFF in its byte order, with bounds checks.
struct TIFFReader {
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

  /// Returns the numbers of a tag's entry, up to `most`; `nil` if their type is not an integer, or they lie outside of the file.
  fileprivate func values(ofEntry place: Int, atMost most: Int) -> [Int]? {
    guard let type = number(at: place + 2, width: 2),
      let count = number(at: place + 4, width: width),
      let size = [1: 1, 3: 2, 4: 4, 16: 8][type], count <= bytes.bytes.count / size
    else { return nil }
    let inline = place + 4 + width
    guard let start = count * size <= width ? inline : number(at: inline, width: width) else {
      return nil
    }
    var values: [Int] = []
    for index in 0..<min(count, most) {
      guard let value = number(at: start + index * size, width: size) else { return nil }
      values.append(value)
    }
    return values
  }

  /// Returns the places of the entries of a directory by tag. Of several with the same tag, libtiff reads the first.
  fileprivate func entries(ofDirectoryAt place: Int) -> [Int: Int] {
    let (countWidth, length) = isBigTIFF ? (8, 20) : (2, 12)
    guard let count = number(at: place, width: countWidth), count <= 65_535 else { return [:] }
    var entries: [Int: Int] = [:]
    for index in 0..<count {
      let entry = place + countWidth + index * length
      guard let tag = number(at: entry, width: 2) else { break }
      if entries[tag] == nil { entries[tag] = entry }
    }
    return entries
  }
}

/// The tags of a directory.
struct TIFFTags {
  private let reader: TIFFReader
  private let entries: [Int: Int]

  /// Finds a directory by its number in the chain; `nil` if it is unreadable.
  init?(_ file: UnsafeRawBufferPointer, directory: Int) {
    guard let reader = TIFFReader(file) else { return nil }
    var place = reader.firstDirectory
    for _ in 0..<directory {
      place = place.flatMap { reader.directory(at: $0)?.next }
    }
    guard let place, place > 0 else { return nil }
    self.reader = reader
    entries = reader.entries(ofDirectoryAt: place)
  }

  /// Returns the first number of a tag; `nil` if it is absent.
  func first(_ tag: Int) -> Int? { values(tag, atMost: 1)?.first }

  /// Returns the numbers of a tag, up to `most`; `nil` if it is absent or empty.
  func values(_ tag: Int, atMost most: Int = .max) -> [Int]? {
    guard let values = entries[tag].flatMap({ reader.values(ofEntry: $0, atMost: most) }),
      !values.isEmpty
    else { return nil }
    return values
  }
}
