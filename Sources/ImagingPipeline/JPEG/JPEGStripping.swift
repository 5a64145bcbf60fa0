// JPEGStripping: strips a JPEG's metadata without decoding the file.

/// Copies or drops the segments of a JPEG (ISO/IEC 10918-1, annex B).
enum JPEGStripping {
  /// Returns the file with only what its pixels need; `nil` for kinds that browsers do not draw,
  /// and for damaged files.
  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    var cursor = FileCursor(file)
    guard cursor.big(2) == 0xffd8 else { return nil }
    var result: [UInt8] = [0xff, 0xd8]
    result.reserveCapacity(file.count)
    var (hasJFIF, hasAdobe, hasFrame, hasScan) = (false, false, false, false)
    while true {
      guard let marker = marker(&cursor) else { return nil }
      if marker == 0xd9 {
        guard hasScan else { return nil }
        return result + [0xff, 0xd9]
      }
      let start = cursor.position
      guard let length = cursor.big(2), length >= 2, let content = cursor.take(length - 2) else {
        return nil
      }
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
        keep(file[start..<cursor.position])
      // Huffman tables, quantization tables, restart interval, number of lines.
      case 0xc4, 0xdb, 0xdd, 0xdc: keep(file[start..<cursor.position])
      case 0xda:
        guard hasFrame else { return nil }
        hasScan = true
        keep(file[start..<cursor.position])
        guard let scan = scan(&cursor, in: file) else { return nil }
        result += scan
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

  /// Reads the code of the next marker, after any number of fill bytes.
  private static func marker(_ cursor: inout FileCursor) -> UInt8? {
    guard cursor.byte() == 0xff else { return nil }
    var code = cursor.byte()
    while code == 0xff { code = cursor.byte() }
    return code
  }

  /// Returns the entropy-coded data up to the next marker other than a restart marker; in that data
  /// 0xff is followed by 0.
  private static func scan(
    _ cursor: inout FileCursor, in file: UnsafeRawBufferPointer
  ) -> Slice<UnsafeRawBufferPointer>? {
    let start = cursor.position
    var place = start
    while place < file.count - 1 {
      let next = file[place + 1]
      if file[place] == 0xff, next != 0, next != 0xff, !(0xd0...0xd7).contains(next) {
        _ = cursor.take(place - start)
        return file[start..<place]
      }
      place += 1
    }
    return nil
  }
}
