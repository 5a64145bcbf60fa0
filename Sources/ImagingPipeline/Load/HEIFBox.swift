// HEIFBox: splits the content of a HEIC or AVIF into boxes.

import Platform

/// A box of the container: its type and content.
struct HEIFBox {
  let type: String
  let content: ByteReader

  /// Returns the sequence of boxes, up to the first box that exceeds the available bytes.
  static func all(in reader: ByteReader) -> [HEIFBox] {
    var rest = reader
    var boxes: [HEIFBox] = []
    while boxes.count < maximumCount, let box = try? BoxLengths.next(in: &rest, depth: 0) {
      boxes.append(HEIFBox(type: box.type, content: box.content))
    }
    return boxes
  }

  static func first(_ type: String, in reader: ByteReader) -> ByteReader? {
    all(in: reader).first { $0.type == type }?.content
  }

  /// The maximum number of boxes read at one level.
  private static let maximumCount = 4_096
}
