// CodedSize: the size of an item's samples, as its own bytes tell it.

import CDav1d
import Model
import Platform

extension HEIFItem {
  /// The size that the container gives (`ispe`).
  var statedSize: PixelSize? {
    guard let box = properties.first(where: { $0.type == "ispe" })?.content,
      let width = try? box.number(at: 4, width: 4), let height = try? box.number(at: 8, width: 4)
    else { return nil }
    return PixelSize(width: width, height: height)
  }

  /// The size before all properties that change the image; `nil` for other codecs, and for malformed bytes.
  var codedSize: PixelSize? {
    switch type {
    case HEIFImage.Codec.av1.rawValue:
      var header = Dav1dSequenceHeader()
      let start = data.baseAddress?.assumingMemoryBound(to: UInt8.self)
      guard dav1d_parse_sequence_header(&header, start, data.count) == 0 else { return nil }
      return PixelSize(width: Int(header.max_width), height: Int(header.max_height))
    case HEIFImage.Codec.hevc.rawValue:
      return properties.first { $0.type == "hvcC" }.flatMap {
        try? HEVCParameters.size(in: $0.content)
      }
    case "grid": return HEIFImage.Grid.size(in: data)
    default: return nil
    }
  }
}

/// The parameters of HEVC images.
private enum HEVCParameters {
  /// Returns the size of the pictures.
  ///
  /// - Parameter configuration: The content of `hvcC` (ISO/IEC 14496-15, 8.3.2.1.2).
  static func size(in configuration: ByteReader) throws(EndOfBytes) -> PixelSize? {
    var units = configuration
    _ = try units.take(22)
    for _ in 0..<(try units.number(1)) {
      let type = try units.number(1) & 0x3f
      for _ in 0..<(try units.number(2)) {
        let unit = try units.take(try units.number(2))
        // ITU-T H.265, table 7-1.
        if type == 33 { return size(of: unit) }
      }
    }
    return nil
  }

  /// Returns the size of pictures with a sequence parameter set (ITU-T H.265, 7.3.2.2).
  private static func size(of parameters: UnsafeRawBufferPointer) -> PixelSize? {
    var bytes: [UInt8] = []
    var zeros = 0
    // The size is among the first bytes. A 3 behind two zeros belongs to no number (7.4.2).
    for byte in parameters.prefix(256) {
      let isContent = zeros < 2 || byte != 3
      if isContent { bytes.append(byte) }
      zeros = isContent && byte == 0 ? zeros + 1 : 0
    }
    return bytes.withUnsafeBytes {
      // Behind the head of the unit.
      var bits = BitReader($0, at: 16)
      return try? size(in: &bits)
    }
  }

  private static func size(in bits: inout BitReader) throws(EndOfBytes) -> PixelSize {
    try bits.pass(4)
    let layers = try bits.number(3)
    try bits.pass(1 + 88 + 8)
    // What sub-layers have of their profile and level (7.3.3).
    var described = 0
    for _ in 0..<(layers > 0 ? 8 : 0) {
      described += try bits.flag() ? 88 : 0
      described += try bits.flag() ? 8 : 0
    }
    try bits.pass(described)
    _ = try bits.exponential()
    let chroma = try bits.exponential()
    if chroma == 3 { try bits.pass(1) }
    let (width, height) = (try bits.exponential(), try bits.exponential())
    guard try bits.flag() else { return PixelSize(width: width, height: height) }
    // What is cut off at each side, in samples of colour.
    let (left, right) = (try bits.exponential(), try bits.exponential())
    let (top, bottom) = (try bits.exponential(), try bits.exponential())
    let (across, down) = (chroma == 1 || chroma == 2 ? 2 : 1, chroma == 1 ? 2 : 1)
    return PixelSize(
      width: width - across * (left + right), height: height - down * (top + bottom))
  }
}
