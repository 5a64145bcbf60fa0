// JPEGStripping: strips a JPEG's metadata without decoding the file.

import Model

/// Copies or drops the segments of a JPEG (ISO/IEC 10918-1, annex B).
enum JPEGStripping {
  /// Returns the file with only what its pixels need; `nil` for kinds that browsers do not draw,
  /// and for damaged files.
  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard file.starts(with: [0xff, 0xd8]) else { return nil }
    var markers = JPEGMarkers(file)
    var result: [UInt8] = [0xff, 0xd8]
    result.reserveCapacity(file.count)
    var hasJFIF = false
    var hasAdobe = false
    var hasFrame = false
    var hasScan = false
    while true {
      guard let marker = try? markers.next() else { return nil }
      if marker == 0xd9 {
        guard hasScan else { return nil }
        return result + [0xff, 0xd9]
      }
      let start = markers.position
      guard let content = try? markers.segment() else { return nil }
      func keep(_ bytes: some Sequence<UInt8>) {
        result += [0xff, marker]
        result += bytes
      }
      switch marker {
      // Frames: baseline, extended and progressive, all Huffman-coded with 8 bits. Four components
      // would be CMYK.
      case 0xc0, 0xc1, 0xc2:
        guard !hasFrame, content.count >= 6, content[0] == 8, [1, 3].contains(content[5]) else {
          return nil
        }
        hasFrame = true
        keep(file[start..<markers.position])
      // Huffman tables, quantization tables, restart interval, number of lines.
      case 0xc4, 0xdb, 0xdd, 0xdc: keep(file[start..<markers.position])
      case 0xda:
        guard hasFrame else { return nil }
        hasScan = true
        keep(file[start..<markers.position])
        let scan = markers.position
        guard (try? markers.skipScan()) != nil else { return nil }
        result += file[scan..<markers.position]
      case 0xe0
      where !hasJFIF && !hasScan && content.count >= 14
        && content.starts(with: "JFIF\0".utf8):
        hasJFIF = true
        // Drops the thumbnail, whose two sides are the last bytes of the fixed part.
        keep([0, 16] + content.prefix(12) + [0, 0])
      case 0xee
      where !hasAdobe && !hasScan && content.count >= 12
        && content.starts(with: "Adobe".utf8):
        hasAdobe = true
        keep([0, 14] + content.prefix(12))
      // With two Adobe segments, decoders disagree on which one applies.
      case 0xee where content.count >= 12 && content.starts(with: "Adobe".utf8): return nil
      case 0xe0...0xef, 0xfe: break
      default: return nil
      }
    }
  }
}
