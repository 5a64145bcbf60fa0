// PNGParts: the chunks of a PNG around its rows.

import CDeflate

/// A PNG without its rows, which can be put back in another form.
struct PNGParts {
  /// The layout of the rows.
  let layout: PNGLayout
  /// The bytes before the `IDAT` chunks and after them.
  private let head: [UInt8]
  private let tail: [UInt8]

  /// Finds the chunks. Returns `nil` if one is damaged or unknown to matter for the rows.
  init?(_ file: UnsafeRawBufferPointer) {
    guard file.count > 8 else { return nil }
    var chunks = PNGChunks(file)
    var layout: PNGLayout?
    var place: Range<Int>?
    while true {
      let start = chunks.position
      guard let chunk = try? chunks.next(),
        libdeflate_crc32(0, chunk.checked.baseAddress, chunk.checked.count) == chunk.checksum,
        // An animation has frames in chunks of their own.
        !chunk.isOf("acTL")
      else { return nil }
      if chunk.isOf("IHDR") {
        guard start == 8 else { return nil }
        layout = PNGLayout(header: chunk.content)
      } else if chunk.isOf("IDAT") {
        // These chunks follow each other (5.6).
        guard place == nil || place?.upperBound == start else { return nil }
        place = (place?.lowerBound ?? start)..<chunks.position
      } else if chunk.isOf("IEND") {
        break
      }
    }
    guard let layout, let place, chunks.position == file.count else { return nil }
    self.layout = layout
    head = Array(file[..<place.lowerBound])
    tail = Array(file[place.upperBound...])
  }

  /// Returns the rows of the file as a zlib stream: the contents of all `IDAT` chunks.
  ///
  /// - Parameter file: The file that the parts are of.
  func compressed(in file: UnsafeRawBufferPointer) -> [UInt8] {
    var chunks = PNGChunks(file)
    var compressed: [UInt8] = []
    while let chunk = try? chunks.next(), !chunk.isOf("IEND") {
      if chunk.isOf("IDAT") { compressed += chunk.content }
    }
    return compressed
  }

  /// Returns the file with other compressed rows, in one chunk.
  func file(with compressed: [UInt8]) -> [UInt8] {
    head + Self.chunk("IDAT", compressed) + tail
  }

  /// Returns the file with rows of another form.
  ///
  /// - Parameters:
  ///   - compressed: The rows as a zlib stream.
  ///   - depth: The bits of a sample.
  ///   - colourType: The colour type (11.2.1).
  ///   - chunks: What goes in front of the rows, in order.
  func file(
    with compressed: [UInt8], depth: UInt8, colourType: UInt8, chunks: [(String, [UInt8])]
  ) -> [UInt8] {
    // The signature is 8 bytes, and `IHDR` with 13 of content comes first (5.2, 5.6).
    var header = Array(head[16..<29])
    header[8] = depth
    header[9] = colourType
    return Array(head[..<8]) + Self.chunk("IHDR", header) + head[33...]
      + chunks.flatMap { Self.chunk($0, $1) } + Self.chunk("IDAT", compressed) + tail
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + content
    return [UInt8].number(content.count, 4) + checked
      + [UInt8].number(Int(libdeflate_crc32(0, checked, checked.count)), 4)
  }
}
