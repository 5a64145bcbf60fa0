// HEIFSamplesTests: limited range of grey images and of alpha, and colours multiplied by alpha.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HEIFSamplesTests {
  /// Grey, with all values of the limited range as its alpha.
  private static let ramp = Pixels(width: 220, height: 16, bands: 4) { x, _ in
    [60, 60, 60, UInt8(16 + min(x, 219))]
  }

  /// Returns a value of the limited range in full range.
  private static func full(_ x: Int) -> UInt8 { UInt8((Double(x) * 255 / 219).rounded()) }

  /// Returns a file with an image of one plane: the ramp.
  private static func grey(
    isAVIF: Bool, model: Bool?, coded: Bool? = nil, options: String = CodedParts.usual
  ) throws -> [UInt8] {
    var item = try CodedParts(of: ramp, isAVIF: isAVIF, options: options).alpha
    if let coded { try CodedParts.setRange(isFull: coded, in: &item.data) }
    if let model { item.properties.append(HEIFBoxes.nclx(coefficients: 6, isFullRange: model)) }
    return HEIFFile([item]).bytes
  }

  private func holds(_ file: [UInt8], isFull: Bool) throws {
    let made = try Made(file) { $0.format = .png }.pixels()
    for x in stride(from: 0, to: 220, by: 3) {
      let value = isFull ? UInt8(16 + x) : Self.full(x)
      #expect(
        isClose(made.rgb(x: x, y: 8), to: [value, value, value], within: 3), "\(x) \(isFull)")
    }
    let small = try Made(file) {
      $0.format = .png
      $0.width = 110
    }
    let end: UInt8 = isFull ? 235 : 255
    #expect(isClose(try small.pixels().rgb(x: 109, y: 4), to: [end, end, end], within: 3))
  }

  @Test(arguments: [true], [true, false])
  func `a grey image of limited range is stretched`(isAVIF: Bool, isFull: Bool) throws {
    try holds(try Self.grey(isAVIF: isAVIF, model: isFull), isFull: isFull)
  }

  @Test func `the samples of 12 bits are stretched alike`() throws {
    let options = "\(CodedParts.usual),bitdepth=12"
    try holds(try Self.grey(isAVIF: true, model: false, options: options), isFull: false)
  }

  @Test(arguments: [true, false])
  func `without the container's model the coded image's range counts`(isFull: Bool) throws {
    try holds(try Self.grey(isAVIF: true, model: nil, coded: isFull), isFull: isFull)
    try holds(try Self.grey(isAVIF: true, model: isFull, coded: !isFull), isFull: isFull)
  }

  /// Returns the ramp as alpha of a grey of 60.
  private static func transparent(
    _ references: [(type: String, item: Int, others: [Int])], isAVIF: Bool = true,
    change: (inout HEIFFile.Item) throws -> Void = { _ in }
  ) throws -> [UInt8] {
    var parts = try CodedParts(of: ramp, isAVIF: isAVIF)
    parts.colours.properties.append(HEIFBoxes.nclx(coefficients: 6))
    parts.alpha.properties.append(CodedParts.isAlpha)
    try change(&parts.alpha)
    return HEIFFile([parts.colours, parts.alpha]) { $0.references = references }.bytes
  }

  @Test(arguments: [true])
  func `alpha of limited range is stretched`(isAVIF: Bool) throws {
    let file = try Self.transparent([("auxl", 2, [1])], isAVIF: isAVIF) {
      $0.properties.append(HEIFBoxes.nclx(coefficients: 6, isFullRange: false))
    }
    let made = try Made(file) { $0.format = .png }.pixels()
    for x in stride(from: 0, to: 220, by: 3) {
      #expect(abs(Int(made[x, 8][3]) - Int(Self.full(x))) <= 2)
      #expect(isClose(made.rgb(x: x, y: 8), to: [60, 60, 60], within: 4))
    }
  }

  @Test(arguments: [true, false])
  func `the coded alpha says its range`(isFull: Bool) throws {
    let file = try Self.transparent([("auxl", 2, [1])]) {
      try CodedParts.setRange(isFull: isFull, in: &$0.data)
    }
    let made = try Made(file) { $0.format = .png }.pixels()
    #expect(made[219, 8][3] == (isFull ? 235 : 255))
  }

  @Test func `colours that are multiplied by alpha are divided`() throws {
    let file = try Self.transparent([("auxl", 2, [1]), ("prem", 1, [2])]) {
      try CodedParts.setRange(isFull: true, in: &$0.data)
    }
    let made = try Made(file) { $0.format = .png }.pixels()
    for x in stride(from: 0, to: 220, by: 3) {
      let value = UInt8(min(60 * 255 / (16 + x), 255))
      #expect(isClose(made.rgb(x: x, y: 8), to: [value, value, value], within: 6), "\(x)")
      #expect(abs(Int(made[x, 8][3]) - 16 - x) <= 1)
    }
  }
}
