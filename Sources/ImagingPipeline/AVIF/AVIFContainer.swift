// AVIFContainer: puts a coded AV1 image into an AVIF.

import Model

/// The file around one still picture of three planes, 8 bits, 4:2:0, in sRGB (AV1 Image File Format 1.1; ISO/IEC 23008-12).
enum AVIFContainer {
  /// MatrixCoefficients of the planes (ITU-T H.273): BT.601.
  static let matrix: UInt8 = 6

  /// Returns the file.
  ///
  /// - Parameter frame: The OBUs of the image, as libaom writes them (AV1 specification, 5.3).
  /// - Returns: `nil` unless they begin with a sequence header of a still picture.
  static func file(of frame: [UInt8], _ size: PixelSize) -> [UInt8]? {
    var frame = frame[...]
    // A temporal delimiter, which a file leaves out (AV1 Codec ISO Media File Format Binding, 2.4).
    if frame.starts(with: [0x12, 0]) { frame = frame.dropFirst(2) }
    guard let configuration = configuration(of: frame) else { return nil }
    // The length of `meta` does not depend on where the coded image is.
    let head: [UInt8] = .box("ftyp", Array("avif".utf8), .number(0, 4), Array("avifmif1miaf".utf8))
    let start = head.count + meta(frame.count, at: 0, size, configuration).count + 8
    return head + meta(frame.count, at: start, size, configuration)
      + [UInt8].box("mdat", Array(frame))
  }

  /// Returns the content of `av1C` (AV1 Codec ISO Media File Format Binding, 2.3): what the sequence header says.
  private static func configuration(of frame: ArraySlice<UInt8>) -> [UInt8]? {
    let bytes = Array(frame.prefix(4))
    // The header of a sequence header of fewer than 128 bytes (AV1 specification, 5.3.2), and the flags of a still picture
    // with a short header (5.5.1).
    guard bytes.count == 4, bytes[0] == 0x0a, bytes[1] < 0x80, bytes[2] & 0x18 == 0x18 else {
      return nil
    }
    let profile = bytes[2] >> 5
    let level = (bytes[2] & 7) << 2 | bytes[3] >> 6
    // 8 bits, of three planes, whose colours are subsampled in both directions.
    return [0x81, profile << 5 | level, 0x0c, 0]
  }

  private static func meta(
    _ count: Int, at start: Int, _ size: PixelSize, _ configuration: [UInt8]
  ) -> [UInt8] {
    let item: [UInt8] = [0, 1]
    let properties: [[UInt8]] = [
      .box("ispe", fullBox, .number(size.width, 4), .number(size.height, 4)),
      .box("pixi", fullBox, [3, 8, 8, 8]),
      .box("av1C", configuration),
      // sRGB: primaries of BT.709, the transfer of IEC 61966-2-1, full range.
      .box("colr", Array("nclx".utf8), .number(1, 2), .number(13, 2), [0, matrix, 0x80]),
    ]
    // All four, of which a reader has to know `av1C`.
    let associations: [UInt8] = [4, 1, 2, 0x83, 4]
    return .box(
      "meta", fullBox,
      .box("hdlr", zeros(8), Array("pict".utf8), zeros(13)),
      .box("pitm", fullBox, item),
      // Offset and length have 4 bytes; the coded image is in one piece.
      .box(
        "iloc", fullBox, [0x44, 0, 0, 1], item, .number(0, 2), [0, 1], .number(start, 4),
        .number(count, 4)),
      .box(
        "iinf", fullBox, [0, 1],
        .box("infe", [2, 0, 0, 0], item, .number(0, 2), Array("av01".utf8), [0])),
      .box(
        "iprp", .box("ipco", properties.flatMap(\.self)),
        .box("ipma", fullBox, .number(1, 4), item, associations)))
  }

  /// Version and flags (ISO/IEC 14496-12, 4.2).
  private static let fullBox = zeros(4)

  private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }
}
