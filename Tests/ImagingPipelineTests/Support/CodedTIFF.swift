// CodedTIFF: TIFFs with several directories of given kinds.

/// A TIFF or BigTIFF (TIFF 6.0) of uniform grey images, one in each directory.
struct CodedTIFF {
  /// One directory.
  struct Directory {
    var width = 8
    var height = 8
    /// The grey of all pixels.
    var grey: UInt8
    /// `NewSubfileType`: 1 is a reduced copy, 4 a mask; `nil` omits the tag.
    var kind: Int?
    /// The obsolete `SubfileType`: 2 is a reduced copy.
    var oldKind: Int?
  }

  var directories: [Directory]
  var isBigEndian = false
  var isBigTIFF = false

  var bytes: [UInt8] {
    var bytes = Array((isBigEndian ? "MM" : "II").utf8) + number(isBigTIFF ? 43 : 42, width: 2)
    if isBigTIFF { bytes += number(8, width: 2) + number(0, width: 2) }
    bytes += number(bytes.count + width, width: width)
    for (index, directory) in directories.enumerated() {
      let isLast = index == directories.count - 1
      let entries = fields(of: directory)
      let length =
        (isBigTIFF ? 8 : 2) + (entries.count + 1) * (isBigTIFF ? 20 : 12) + width
      // The pixels follow their directory.
      let pixels = bytes.count + length
      let pixelCount = directory.width * directory.height
      bytes += number(entries.count + 1, width: isBigTIFF ? 8 : 2)
      for (tag, value) in (entries + [(273, pixels)]).sorted(by: { $0.tag < $1.tag }) {
        bytes +=
          number(tag, width: 2) + number(4, width: 2) + number(1, width: width)
          + number(value, width: 4)
        if isBigTIFF { bytes += number(0, width: 4) }
      }
      // Offsets are even.
      let padding = pixelCount % 2
      bytes += number(isLast ? 0 : pixels + pixelCount + padding, width: width)
      bytes += [UInt8](repeating: directory.grey, count: pixelCount + padding)
    }
    return bytes
  }

  private var width: Int { isBigTIFF ? 8 : 4 }

  /// Returns tags and values, except for the offset of the pixels.
  private func fields(of directory: Directory) -> [(tag: Int, value: Int)] {
    var fields = [(tag: Int, value: Int)]()
    if let kind = directory.kind { fields.append((254, kind)) }
    if let oldKind = directory.oldKind { fields.append((255, oldKind)) }
    return fields + [
      (256, directory.width), (257, directory.height), (258, 8), (259, 1), (262, 1), (277, 1),
      (278, directory.height), (279, directory.width * directory.height),
    ]
  }

  /// Returns a number in the file's byte order. Values are `LONG`s, in the first 4 of the 8 bytes
  /// that BigTIFF reserves.
  private func number(_ value: Int, width: Int) -> [UInt8] {
    let bytes = (0..<width).map { UInt8(value >> (8 * $0) & 255) }
    return isBigEndian ? bytes.reversed() : bytes
  }
}
