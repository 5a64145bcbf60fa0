// HEIFContainersTests: arrangements of boxes that browsers show and libheif refuses.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HEIFContainersTests {
  private static let scene = Pixels.scene(width: 96, height: 64, alpha: true)

  /// Returns the pixels of a file of the scene's colours, or of two scenes beside each other.
  private func pixels(
    _ isAVIF: Bool, isGrid: Bool = false, properties: [[UInt8]] = [], isInFront: Bool = false,
    change: (inout HEIFFile) -> Void = { _ in }
  ) throws -> Pixels {
    var item = try CodedParts(of: Self.scene, isAVIF: isAVIF).colours
    item.properties = isInFront ? properties + item.properties : item.properties + properties
    let file = HEIFFile([item]) {
      if isGrid { $0.tile(1) }
      change(&$0)
    }
    return try Made(file.bytes) { $0.format = .png }.pixels()
  }

  @Test(arguments: [true, false], [true, false])
  func `the last box may be open`(isAVIF: Bool, isGrid: Bool) throws {
    let closed = try pixels(isAVIF, isGrid: isGrid)
    for isMeta in [true, false] {
      let made = try pixels(isAVIF, isGrid: isGrid) {
        $0.isOpen = true
        $0.isMetaLast = isMeta
      }
      #expect(made.values == closed.values)
    }
  }

  @Test(arguments: [true, false], [true, false])
  func `turns and crops may be listed before the size`(isAVIF: Bool, isGrid: Bool) throws {
    let turn = HEIFBoxes.box("irot", content: [1])
    let crop = HEIFBoxes.box(
      "clap", content: [32, 1, 48, 1, 0, 1, 0, 1].flatMap { HEIFBoxes.number($0, width: 4) })
    for (properties, size) in [
      ([turn], PixelSize(width: 64, height: isGrid ? 192 : 96)),
      ([crop], PixelSize(width: 32, height: 48)), ([crop, turn], PixelSize(width: 48, height: 32)),
    ] {
      let made = try pixels(isAVIF, isGrid: isGrid, properties: properties, isInFront: true)
      #expect(made.size == size)
      let usual = try pixels(isAVIF, isGrid: isGrid, properties: properties)
      #expect(made.values == usual.values)
    }
  }

  @Test(arguments: HEIFSequence.Description.allCases, [true, false])
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

  @Test(
    arguments: [
      (nil, nil, 255), (0, nil, 255), (1, nil, 128), (2, nil, 0), (0, 1, 128), (1, 0, 0),
      (nil, 0xffff, 255), (nil, 1, 128), (nil, 0, 0),
    ] as [(Int?, Int?, UInt8)])
  func `an operating point of a coded image, and a layer of it, is shown`(
    point: Int?, layer: Int?, grey: UInt8
  ) throws {
    let size = PixelSize(width: 96, height: 64)
    let item = HEIFFile.Item(
      type: "av01", data: try TestImages.layeredAV1([16, 126, 235], size: size),
      properties: [
        HEIFBoxes.box(
          "ispe", content: [0, 0, 0, 0, 0, 0, 0, UInt8(size.width), 0, 0, 0, UInt8(size.height)]),
        HEIFBoxes.box("av1C", content: [0x81, 0, 0x0c, 0]),
      ] + (point.map { [HEIFBoxes.box("a1op", content: [UInt8($0)])] } ?? [])
        + (layer.map { [HEIFBoxes.box("lsel", content: HEIFBoxes.number($0, width: 2))] } ?? []))
    let file = HEIFFile([item]) { $0.essential.formUnion(["a1op", "lsel"]) }.bytes
    // As it is, and reduced from its planes.
    for width in [96, 20] {
      let made = try Made(file) {
        $0.format = .png
        $0.width = width
      }.pixels()
      #expect(isClose(made.rgb(x: 9, y: 9), to: [grey, grey, grey], within: 3))
    }
  }

  /// A sequence header with three operating points: three, two and one spatial layers.
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
