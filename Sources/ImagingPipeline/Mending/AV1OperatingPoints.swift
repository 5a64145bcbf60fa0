// AV1OperatingPoints: finds the operating points in an AV1 sequence header, of which decoders choose the first.

import Platform

/// The operating points of a coded image: which of its layers belong to each (AV1 specification, 5.5.1).
struct AV1OperatingPoints {
  /// The bytes of the sequence header.
  private let header: UnsafeRawBufferPointer
  /// Where operating_point_idc of each point begins, in bits.
  private let places: [Int]
  private static let width = 12

  /// - Returns: `nil` without a whole sequence header. A still picture's short header has no operating points.
  init?(of data: UnsafeRawBufferPointer) {
    guard let header = Self.sequenceHeader(in: data), let places = try? Self.places(in: header)
    else { return nil }
    self.header = header
    self.places = places
  }

  /// Returns the bytes to replace so that decoders choose an operating point, and a layer of it.
  ///
  /// - Parameters:
  ///   - point: The number of the operating point.
  ///   - layer: The number of the spatial layer that is shown, with those below it; `nil` for all of the operating point.
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
