// HEIFContainersTests: arrangements of boxes that browsers show and libheif refuses.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HEIFContainersTests {
  private static let scene = Pixels.scene(width: 64, height: 48, alpha: true)

  /// Returns the pixels of a file of the scene's colours.
  private func pixels(
    _ isAVIF: Bool, properties: [[UInt8]] = [], isInFront: Bool = false,
    change: (inout HEIFFile) -> Void = { _ in }
  ) throws -> Pixels {
    var item = try CodedParts(of: Self.scene, isAVIF: isAVIF).colours
    item.properties = isInFront ? properties + item.properties : item.properties + properties
    return try Made(HEIFFile([item], change: change).bytes) { $0.format = .png }.pixels()
  }

  @Test(arguments: [true], [true, false])
  func `the last box may be open`(isAVIF: Bool, isMeta: Bool) throws {
    let made = try pixels(isAVIF) {
      $0.isOpen = true
      $0.isMetaLast = isMeta
    }
    #expect(made.values == (try pixels(isAVIF).values))
  }

  @Test func `turns and crops of AV1 may be listed before the size`() throws {
    let isAVIF = true
    let turn = HEIFBoxes.box("irot", content: [1])
    let crop = HEIFBoxes.box(
      "clap", content: [32, 1, 48, 1, 0, 1, 0, 1].flatMap { HEIFBoxes.number($0, width: 4) })
    for (properties, size) in [
      ([turn], PixelSize(width: 48, height: 64)), ([crop], PixelSize(width: 32, height: 48)),
      ([crop, turn], PixelSize(width: 48, height: 32)),
    ] {
      let made = try pixels(isAVIF, properties: properties, isInFront: true)
      #expect(made.size == size)
      #expect(made.values == (try pixels(isAVIF, properties: properties).values))
    }
  }

  @Test(arguments: HEIFSequence.Description.allCases, [true])
  func `of a sequence the first frame is shown`(
    description: HEIFSequence.Description, isAVIF: Bool
  ) throws {
    let item = try CodedParts(of: Self.scene, isAVIF: isAVIF).colours
    let still = HEIFFile([item]).bytes
    let sequence = try HEIFSequence {
      $0.isAVIF = isAVIF
      $0.description = description
    }.file(of: still, size: Self.scene.size)
    let made = try Made(sequence) { $0.format = .png }
    #expect(made.droppedFrames == 4)
    #expect(try made.pixels().values == Made(still) { $0.format = .png }.pixels().values)
    #expect(try SourceInfo(sequence).frames == 5)
  }

  @Test func `the first operating point and all layers are no selection`() throws {
    let plain = try pixels(true)
    for selection in [
      HEIFBoxes.box("a1op", content: [0]), HEIFBoxes.box("lsel", content: [0xff, 0xff]),
    ] {
      let made = try pixels(true, properties: [selection]) {
        $0.essential.formUnion(["a1op", "lsel"])
      }
      #expect(made.values == plain.values)
    }
  }

  /// A sequence header with three operating points, of three, two and one spatial layers and one temporal one.
  private static let layered: [UInt8] = {
    let bits =
      "000" + "0" + "0" + "0" + "0" + "00010"
      + ["011100000001", "001100000001", "000100000001"].map { $0 + "01000" + "0" }.joined()
    // Levels of 8 and more have a tier.
    let padded = bits + String(repeating: "0", count: 96 - bits.count)
    let bytes = (0..<12).map { index in
      UInt8(padded.dropFirst(8 * index).prefix(8), radix: 2) ?? 0
    }
    return [0x12, 0, 0x0a, UInt8(bytes.count)] + bytes
  }()

  @Test(
    arguments: [
      (0, nil, 0b0111_0000_0001), (1, nil, 0b0011_0000_0001), (2, nil, 0b0001_0000_0001),
      (0, 1, 0b0011_0000_0001), (0, 0, 0b0001_0000_0001), (1, 2, nil), (3, nil, nil), (0, 9, nil),
    ] as [(Int, Int?, Int?)])
  func `an operating point and a layer of it become the first point`(
    point: Int, layer: Int?, expected: Int?
  ) throws {
    let edit = Self.layered.withUnsafeBytes { data -> (offset: Int, bytes: [UInt8])? in
      guard let edit = AV1OperatingPoints(of: data)?.selecting(point, layer: layer),
        let start = edit.place.baseAddress, let base = data.baseAddress
      else { return nil }
      return (start - base, edit.bytes)
    }
    guard let edit else {
      #expect(expected == nil)
      return
    }
    // The first point follows 12 bits of the header.
    #expect(edit.offset == 5 && edit.bytes.count == 2)
    let found = edit.bytes.reduce(0) { $0 << 8 | Int($1) }
    #expect(found & 0xfff == expected && found >> 12 == Int(Self.layered[5]) >> 4)
  }
}
