// CodedParts: the coded images of a HEIC or AVIF with alpha, to be put into other files.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

/// The coded colours and the coded alpha of an image; alpha is coded as a grey image.
struct CodedParts {
  var colours: HEIFFile.Item
  var alpha: HEIFFile.Item

  /// The options of libvips that most images are encoded with.
  static let usual = "Q=100,subsample_mode=off"

  /// Encodes an image of 4 bands, with size and decoder's needs as properties and no colour models.
  /// Sides of a HEIC are even and at least 64 pixels: libheif makes others a grid of one tile.
  init(of pixels: Pixels, isAVIF: Bool, options: String = usual) throws {
    let file = try TestImages.encode(
      pixels, as: isAVIF ? ".avif[\(options),effort=0]" : ".heic[\(options),compression=hevc]")
    let parts = file.withUnsafeBytes { bytes -> [HEIFFile.Item]? in
      guard let items = HEIFItems(of: bytes), let alpha = items.alpha else { return nil }
      return items.items([items.primary, alpha])?.map { item in
        HEIFFile.Item(
          type: item.type, data: Array(item.data),
          properties: item.properties.filter { ["ispe", "av1C", "hvcC"].contains($0.type) }.map {
            HEIFBoxes.box($0.type, content: Array($0.content.bytes))
          })
      }
    }
    let both = try #require(parts, "libvips writes alpha")
    try #require(both.allSatisfy { $0.type == (isAVIF ? "av01" : "hvc1") })
    colours = both[0]
    alpha = both[1]
  }

  /// The property of alpha.
  static let isAlpha = HEIFBoxes.box(
    "auxC", content: [0, 0, 0, 0] + Array("urn:mpeg:mpegB:cicp:systems:auxiliary:alpha".utf8) + [0])

  /// Sets the range that a coded grey image states.
  static func setRange(isFull: Bool, in item: inout HEIFFile.Item) throws {
    if item.type == "av01" {
      item.data.set(try rangeOfAV1(in: item.data), to: isFull)
    } else {
      let index = try #require(item.properties.firstIndex { $0[4...].starts(with: "hvcC".utf8) })
      item.properties[index].set(try rangeOfHEVC(in: item.properties[index]), to: isFull)
    }
  }

  /// Finds video_full_range_flag in `hvcC` (ITU-T H.265, E.2.1).
  private static func rangeOfHEVC(in configuration: [UInt8]) throws -> Int {
    // The parameters of video and sequence: a type, a number, a length, and the bytes.
    let video = 8 + 23
    let sequence = video + 5 + Int(configuration[video + 4])
    try #require(configuration[sequence] & 0x3f == 33)
    let end = sequence + 5 + Int(configuration[sequence + 4])
    let last = configuration[end - 1].trailingZeroBitCount
    // Behind the flag libheif writes 76 bits: two numbers of 1 in 32 bits, hence two bytes against
    // start codes. Before it: that there is a flag, and an unspecified format.
    let bit = 8 * end - 1 - last - 76 - 16
    var bits = BitCursor(bytes: configuration, bit: bit - 4)
    try #require(bits.read(4) == 0b1101)
    return bit
  }

  /// Finds color_range in a sequence header (AV1 specification, 5.5.1 and 5.5.2).
  private static func rangeOfAV1(in data: [UInt8]) throws -> Int {
    var bits = BitCursor(bytes: data, bit: data.starts(with: [0x12, 0]) ? 32 : 16)
    // A still picture's short header, whose size and tools come before its colours.
    let profile = bits.read(3)
    let kind = bits.read(2)
    try #require(kind == 3, "libheif writes short headers")
    _ = bits.read(5)
    let width = bits.read(4) + 1
    let height = bits.read(4) + 1
    _ = bits.read(width + height + 6)
    let isDeep = bits.read(1) == 1
    if profile == 2, isDeep { _ = bits.read(1) }
    let planes = bits.read(1)
    try #require(planes == 1, "alpha is grey")
    if bits.read(1) == 1 { _ = bits.read(24) }
    return bits.bit
  }
}

extension [UInt8] {
  fileprivate mutating func set(_ bit: Int, to value: Bool) {
    let mask = UInt8(0x80 >> (bit % 8))
    self[bit / 8] = self[bit / 8] & ~mask | (value ? mask : 0)
  }
}

/// Reads bits.
private struct BitCursor {
  let bytes: [UInt8]
  var bit: Int

  mutating func read(_ count: Int) -> Int {
    var value = 0
    for _ in 0..<count {
      value = value << 1 | Int(bytes[bit / 8]) >> (7 - bit % 8) & 1
      bit += 1
    }
    return value
  }
}
