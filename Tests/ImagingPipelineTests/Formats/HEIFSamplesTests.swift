// HEIFSamplesTests: limited range of grey images and of alpha, and colours multiplied by alpha.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HEIFSamplesTests {
  /// Grey, with all values of the limited range as its alpha.
  private static let ramp = Pixels(width: 220, height: 64, bands: 4) { x, _ in
    [60, 60, 60, UInt8(16 + min(x, 219))]
  }

  /// Returns a value of the limited range in full range.
  private static func full(_ x: Int) -> UInt8 { UInt8((Double(x) * 255 / 219).rounded()) }

  /// Returns a file with an image of one plane: the ramp, or two of it beside each other.
  private static func grey(
    isAVIF: Bool, isGrid: Bool = false, model: Bool?, coded: Bool? = nil,
    options: String = CodedParts.usual
  ) throws -> [UInt8] {
    var item = try CodedParts(of: ramp, isAVIF: isAVIF, options: options).alpha
    if let coded { try CodedParts.setRange(isFull: coded, in: &item) }
    if let model { item.properties.append(HEIFBoxes.nclx(coefficients: 6, isFullRange: model)) }
    return HEIFFile([item]) { if isGrid { $0.tile(1) } }.bytes
  }

  private func holds(_ file: [UInt8], isFull: Bool) throws {
    let made = try Made(file) { $0.format = .png }.pixels()
    for x in stride(from: 0, to: made.size.width, by: 3) {
      let value = isFull ? UInt8(16 + x % 220) : Self.full(x % 220)
      #expect(
        isClose(made.rgb(x: x, y: 8), to: [value, value, value], within: 3), "\(x) \(isFull)")
    }
    let small = try Made(file, width: made.size.width / 2, format: .png)
    let end: UInt8 = isFull ? 235 : 255
    let last = small.size.width - 1
    #expect(isClose(try small.pixels().rgb(x: last, y: 4), to: [end, end, end], within: 3))
  }

  @Test(arguments: [true, false], [true, false])
  func `a grey image of limited range is stretched`(isAVIF: Bool, isGrid: Bool) throws {
    for isFull in [true, false] {
      try holds(try Self.grey(isAVIF: isAVIF, isGrid: isGrid, model: isFull), isFull: isFull)
    }
  }

  @Test func `the samples of 12 bits are stretched alike`() throws {
    let options = "\(CodedParts.usual),bitdepth=12"
    try holds(try Self.grey(isAVIF: true, model: false, options: options), isFull: false)
  }

  @Test(arguments: [true, false], [true, false])
  func `without the container's model the coded image's range counts`(
    isAVIF: Bool, isGrid: Bool
  ) throws {
    for isFull in [true, false] {
      for model in [nil, !isFull] {
        let file = try Self.grey(isAVIF: isAVIF, isGrid: isGrid, model: model, coded: isFull)
        try holds(file, isFull: model ?? isFull)
      }
    }
  }

  /// Returns the ramp as alpha of a grey of 60, or two of both beside each other.
  private static func transparent(
    isAVIF: Bool, isGrid: Bool, isPremultiplied: Bool = false,
    change: (inout HEIFFile.Item) throws -> Void
  ) throws -> Pixels {
    var parts = try CodedParts(of: ramp, isAVIF: isAVIF)
    parts.colours.properties.append(HEIFBoxes.nclx(coefficients: 6))
    parts.alpha.properties.append(CodedParts.isAlpha)
    try change(&parts.alpha)
    let file = HEIFFile([parts.colours, parts.alpha]) {
      $0.references = [("auxl", 2, [1])] + (isPremultiplied ? [("prem", 1, [2])] : [])
      if isGrid { for number in 1...2 { $0.tile(number) } }
    }
    let made = try Made(file.bytes) { $0.format = .png }.pixels()
    #expect(made.size.width == (isGrid ? 440 : 220))
    return made
  }

  @Test(arguments: [true, false], [true, false])
  func `alpha of limited range is stretched`(isAVIF: Bool, isGrid: Bool) throws {
    let made = try Self.transparent(isAVIF: isAVIF, isGrid: isGrid) {
      $0.properties.append(HEIFBoxes.nclx(coefficients: 6, isFullRange: false))
    }
    for x in stride(from: 0, to: made.size.width, by: 3) {
      #expect(abs(Int(made[x, 8][3]) - Int(Self.full(x % 220))) <= 2)
      #expect(isClose(made.rgb(x: x, y: 8), to: [60, 60, 60], within: 4))
    }
  }

  @Test(arguments: [true, false], [true, false])
  func `the coded alpha of AV1 says its range`(isAVIF: Bool, isGrid: Bool) throws {
    for isFull in [true, false] {
      let made = try Self.transparent(isAVIF: isAVIF, isGrid: isGrid) {
        try CodedParts.setRange(isFull: isFull, in: &$0)
      }
      let end = isFull || !isAVIF ? 235 : 255
      #expect(abs(Int(made[made.size.width - 1, 8][3]) - end) <= 1)
    }
  }

  @Test(arguments: [true, false], [true, false])
  func `colours that are multiplied by alpha are divided`(isAVIF: Bool, isGrid: Bool) throws {
    let made = try Self.transparent(isAVIF: isAVIF, isGrid: isGrid, isPremultiplied: true) {
      try CodedParts.setRange(isFull: true, in: &$0)
    }
    for x in stride(from: 0, to: made.size.width, by: 3) {
      let alpha = 16 + x % 220
      let value = UInt8(min(60 * 255 / alpha, 255))
      #expect(isClose(made.rgb(x: x, y: 8), to: [value, value, value], within: 6), "\(x)")
      #expect(abs(Int(made[x, 8][3]) - alpha) <= 2)
    }
  }
}
