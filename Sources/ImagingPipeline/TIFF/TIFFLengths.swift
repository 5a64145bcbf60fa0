// TIFFLengths: checks the value counts in a TIFF's directories against the available bytes.

import Model
import Platform

/// Checks the chain of directories of a TIFF or BigTIFF (TIFF 6.0, section 2).
enum TIFFLengths {
  /// The maximum number of directories. libtiff goes through all of them, at 14 µs each.
  private static let maximumDirectories = 10_000

  /// The bytes of each value type, by type code (TIFF 6.0, and BigTIFF's 16 to 18).
  private static let widths = [0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8]

  /// Checks the locations of all entries' values.
  ///
  /// - Throws: `ContainerFault`.
  static func check(_ source: UnsafeRawBufferPointer) throws(ContainerFault) {
    let order: ByteReader.ByteOrder = source.starts(with: [0x4d]) ? .big : .little
    var head = ByteReader(source, at: 2, order: order)
    let isBigTIFF = (try? head.number(2)) == 43
    let offsetWidth = isBigTIFF ? 8 : 4
    if isBigTIFF { head.skip(4) }
    guard var place = try? head.number(offsetWidth), place < source.count else {
      throw .broken("a TIFF without a directory")
    }
    var places: Set<Int> = []
    var left = source.count
    var parts = PartCount(limit: maximumDirectories)
    // A chain ends at an offset outside the file, and where it comes back to a directory, as in libtiff.
    while place > 0, place < source.count, places.insert(place).inserted {
      try parts.add()
      var directory = ByteReader(source, at: place, order: order)
      let entryLength = isBigTIFF ? 20 : 12
      guard let count = try? directory.number(isBigTIFF ? 8 : 2),
        count <= directory.left / entryLength,
        var entries = try? directory.reader(of: count * entryLength)
      else { throw .excess("a directory", Int.max, directory.left) }
      // Otherwise each byte of a file could belong to all directories.
      left -= count * entryLength
      guard left >= 0 else { throw .broken("a TIFF's directories overlap") }
      for _ in 0..<count {
        guard let tag = try? entries.number(2), let type = try? entries.number(2),
          let values = try? entries.number(offsetWidth),
          let offset = try? entries.number(offsetWidth)
        else { break }
        let width = type < widths.count ? widths[type] : 0
        let (length, isTooLong) = values.multipliedReportingOverflow(by: width)
        // Values this small are stored in place of their offset.
        guard isTooLong || length > offsetWidth else { continue }
        guard !isTooLong, offset <= source.count, length <= source.count - offset else {
          throw .excess(
            "tag \(tag)", isTooLong ? Int.max : length, max(source.count - offset, 0))
        }
      }
      place = (try? directory.number(offsetWidth)) ?? 0
    }
  }
}
