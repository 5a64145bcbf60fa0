// HEIFContainersTests: arrangements of boxes that browsers show and libheif refuses, limited ranges
// and premultiplied alpha.

import Core
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

  @Test(arguments: ["small", "large", "open"])
  func `libheif sees no tracks, and the frames are still counted`(length: String) throws {
    let still = HEIFFile([try CodedParts(of: Self.scene, isAVIF: true).colours]).bytes
    var file = try HEIFSequence().file(of: still, size: Self.scene.size)
    let movie = try #require(file.firstRange(of: Array("moov".utf8)))
    let place = movie.lowerBound - 4
    switch length {
    case "large":
      file.insert(contentsOf: HEIFBoxes.number(file.count - place + 8, width: 8), at: place + 8)
      file.replaceSubrange(place..<place + 4, with: HEIFBoxes.number(1, width: 4))
    case "open": file.replaceSubrange(place..<place + 4, with: HEIFBoxes.number(0, width: 4))
    // Free space in front, which is no tracks.
    default: file.insert(contentsOf: HEIFBoxes.box("skip", content: [1, 2, 3]), at: place)
    }
    let mended = try #require(file.withUnsafeBytes(HEIFMending.mended))
    #expect(mended.count == file.count && mended.firstRange(of: Array("moov".utf8)) == nil)
    #expect(mended.withUnsafeBytes(UndecodedAnimation.framesOfHEIF) == 5)
    #expect(try Made(file).droppedFrames == 4)
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
      let made = try Made(file, width: width, format: .png).pixels()
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

  @Test(arguments: 1...8, [false, true])
  func `the container's rotation applies once, and Exif is ignored`(tag: Int, isAVIF: Bool) throws {
    let scene = Pixels.scene(width: 144, height: 96)
    for exif in [nil, tag, 6] {
      let heif = try TestImages.heif(
        scene.stored(forOrientation: tag), isAVIF: isAVIF, orientation: tag,
        exifOrientation: exif)
      let pixels = try Made(heif, format: .png).pixels()
      #expect(pixels.psnr(to: scene) > 28, "Exif \(exif ?? 0)")
    }
  }

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
