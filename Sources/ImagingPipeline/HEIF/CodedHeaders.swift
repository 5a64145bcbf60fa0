// CodedHeaders: reads the headers of coded images: the operating points of AV1, and the size of
// samples.

import CDav1d
import Core

/// The operating points of a coded image: which of its layers belong to each (AV1 specification,
/// 5.5.1).
struct AV1OperatingPoints {
  /// The bytes of the sequence header.
  private let header: UnsafeRawBufferPointer
  /// Where operating_point_idc of each point begins, in bits.
  private let places: [Int]
  private static let width = 12

  /// - Returns: `nil` without a whole sequence header. A still picture's short header has no
  ///   operating points.
  init?(of data: UnsafeRawBufferPointer) {
    guard let header = Self.sequenceHeader(in: data), let places = try? Self.places(in: header)
    else { return nil }
    self.header = header
    self.places = places
  }

  /// Returns the bytes to replace so that decoders choose an operating point, and a layer of it.
  ///
  /// - Parameter layer: The number of the spatial layer that is shown, with those below it; `nil`
  ///   for all of the operating point.
  /// - Returns: `nil` if the image has no such point or layer.
  func selecting(
    _ point: Int, layer: Int?
  ) -> (place: UnsafeRawBufferPointer, bytes: [UInt8])? {
    guard places.indices.contains(point) else { return nil }
    var chosen = BitReader(header, at: places[point])
    guard var layers = try? chosen.number(Self.width) else { return nil }
    if let layer {
      // Spatial layers have the four bits above those of the temporal ones.
      guard (0...3).contains(layer), layers >> (8 + layer) & 1 == 1 else { return nil }
      layers &= (1 << (9 + layer)) - 1
    }
    let (first, end) = (places[0], places[0] + Self.width)
    let place = UnsafeRawBufferPointer(rebasing: header[first / 8..<(end + 7) / 8])
    let count = place.count * 8
    let shift = count - first % 8 - Self.width
    let mask = ((1 << Self.width) - 1) << shift
    let value = place.reduce(0) { $0 << 8 | Int($1) } & ~mask | layers << shift
    return (place, .number(value, place.count))
  }

  private static func places(in header: UnsafeRawBufferPointer) throws(EndOfBytes) -> [Int] {
    var bits = BitReader(header)
    // seq_profile, still_picture, reduced_still_picture_header
    try bits.pass(4)
    if try bits.flag() { return [] }
    var delayLength: Int?
    if try bits.flag() {
      // timing_info: two numbers, and a third one in Exp-Golomb code.
      try bits.pass(64)
      if try bits.flag() { _ = try bits.exponential() }
      if try bits.flag() {
        delayLength = try bits.number(5) + 1
        try bits.pass(32 + 5 + 5)
      }
    }
    let hasDelay = try bits.flag()
    let count = try bits.number(5) + 1
    var places: [Int] = []
    for _ in 0..<count {
      places.append(bits.position)
      try bits.pass(width)
      // seq_level_idx, seq_tier
      if try bits.number(5) > 7 { try bits.pass(1) }
      if let delayLength, try bits.flag() { try bits.pass(2 * delayLength + 1) }
      if hasDelay, try bits.flag() { try bits.pass(4) }
    }
    return places
  }

  /// Returns the content of the first sequence header of a coded image (5.3).
  private static func sequenceHeader(in data: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
    var units = ByteReader(data)
    while let head = try? units.byte() {
      if head & 4 != 0 { units.skip(1) }
      var length = units.left
      if head & 2 != 0 {
        length = 0
        for index in 0..<8 {
          guard let byte = try? units.byte() else { return nil }
          length |= Int(byte & 0x7f) << (7 * index)
          if byte & 0x80 == 0 { break }
        }
      }
      guard let content = try? units.take(length) else { return nil }
      if head >> 3 & 15 == 1 { return content }
    }
    return nil
  }
}

extension HEIFItem {
  /// The size that the container gives (`ispe`).
  var statedSize: PixelSize? {
    guard let box = properties.first(where: { $0.type == "ispe" })?.content,
      let width = try? box.number(at: 4, width: 4), let height = try? box.number(at: 8, width: 4)
    else { return nil }
    return PixelSize(width: width, height: height)
  }

  /// What the data of an AV1 image says of it; `nil` for malformed bytes.
  var sequenceHeader: Dav1dSequenceHeader? {
    var header = Dav1dSequenceHeader()
    let start = data.baseAddress?.assumingMemoryBound(to: UInt8.self)
    return dav1d_parse_sequence_header(&header, start, data.count) == 0 ? header : nil
  }

  /// The size before all properties that change the image; `nil` for other codecs, and for
  /// malformed bytes.
  var codedSize: PixelSize? {
    switch type {
    case HEIFImage.Codec.av1.rawValue:
      return sequenceHeader.map {
        PixelSize(width: Int($0.max_width), height: Int($0.max_height))
      }
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

/// Reads bits of untrusted bytes.
struct BitReader {
  private let bytes: UnsafeRawBufferPointer
  private(set) var position: Int

  init(_ bytes: UnsafeRawBufferPointer, at position: Int = 0) {
    self.bytes = bytes
    self.position = position
  }

  /// Skips bits.
  mutating func pass(_ count: Int) throws(EndOfBytes) {
    guard count <= bytes.count * 8 - position else { throw EndOfBytes() }
    position += count
  }

  mutating func flag() throws(EndOfBytes) -> Bool { try number(1) == 1 }

  mutating func number(_ count: Int) throws(EndOfBytes) -> Int {
    let start = position
    try pass(count)
    return (start..<position).reduce(0) { $0 << 1 | Int(bytes[$1 / 8] >> (7 - $1 % 8) & 1) }
  }

  /// Reads a number in Exp-Golomb code (ITU-T H.265, 9.2; AV1 specification, 4.10.3).
  mutating func exponential() throws(EndOfBytes) -> Int {
    var zeros = 0
    while try !flag() {
      zeros += 1
      // No number has more, and nothing follows them in AV1.
      if zeros == 32 { return Int(UInt32.max) }
    }
    return try 1 << zeros - 1 + number(zeros)
  }
}
