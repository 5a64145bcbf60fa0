// ImageEnd: tells an image that was cut off from a whole one, by its last bytes.

import Model

/// Looks for the end of an image of a format that is passed through while it arrives: its clients must not take a cut
/// one for complete. What decodes it later finds the rest.
enum ImageEnd {
  /// How many of the last bytes are searched: some programs append data.
  private static let reach = 64 << 10

  /// Whether a received body has its image's end, or is of another format.
  static func isThere(_ body: DownloadBuffer) -> Bool {
    let size = body.fileSize
    let head = body.bytes(at: 0, count: 12)
    func hasTail(_ marker: [UInt8]) -> Bool {
      let tail = body.bytes(at: max(size - reach, 0), count: reach)
      // From its end, where a whole image has it.
      return tail.indices.dropLast(marker.count - 1).reversed().contains {
        tail[$0..<$0 + marker.count].elementsEqual(marker)
      }
    }
    // EOI; scans have no FF without 00 or a restart marker behind it.
    if head.starts(with: [0xff, 0xd8, 0xff]) { return hasTail([0xff, 0xd9]) }
    if head.starts(with: [0x89, 0x50, 0x4e, 0x47]) { return hasTail(Array("IEND".utf8)) }
    // The empty block that ends an image's data, and the trailer.
    if head.starts(with: "GIF8".utf8) { return hasTail([0, 0x3b]) }
    guard head.count == 12, head.starts(with: "RIFF".utf8), head[8...].elementsEqual("WEBP".utf8)
    else { return true }
    return head[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) } + 8 <= size
  }
}
