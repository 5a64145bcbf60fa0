// PNGPixelsTests: PNGs that are decoded at once, compared with libvips.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PNGPixelsTests {
  /// Starts libvips, which two threads must not do at the same time.
  init() { TestImages.start() }

  private static func png(
    _ kind: (type: Int, depth: Int), _ random: inout SeededGenerator, width: Int? = nil
  ) -> CodedPNG {
    let size = PixelSize(
      width: width ?? random.number(1...50), height: width == nil ? random.number(1...12) : 9)
    let count = size.pixels * CodedPNG.channels(kind.type)
    var png = CodedPNG(
      size: size, colorType: kind.type, depth: kind.depth,
      samples: (0..<count).map { _ in random.number(0...1 << kind.depth - 1) })
    if kind.type == 3 { png.before = [("PLTE", random.bytes(3 << kind.depth))] }
    return png
  }

  /// Returns the pixels of both decoders; `nil` where `PNGPixels` leaves the PNG to libvips.
  private func both(_ png: [UInt8]) throws -> (mine: [UInt8]?, libvips: [UInt8]) {
    try png.withUnsafeBytes { source in
      let header = try SourceHeader(of: source, as: .png, frame: nil, failOn: .warning)
      let reference = try Loader.open(source, as: .png, pages: .first, failOn: .warning).inMemory()
      let bytes = Self.bytes(of: reference)
      guard let image = PNGPixels.image(source, header) else { return (nil, bytes) }
      let resolutions = [image.resolution, reference.resolution]
      #expect(resolutions[0] == resolutions[1])
      let kinds = [
        (image.format, image.interpretation), (reference.format, reference.interpretation),
      ]
      #expect(kinds[0] == kinds[1])
      let sizes = [image.size, reference.size]
      #expect(sizes[0] == sizes[1])
      return (Self.bytes(of: image), bytes)
    }
  }

  private static func bytes(of image: borrowing Image) -> [UInt8] {
    let count = image.size.pixels * image.pixelBytes
    return image.pixels.map { Array(UnsafeBufferPointer(start: $0, count: count)) } ?? []
  }

  private func isLeft(_ png: [UInt8]) throws -> Bool { try both(png).mine == nil }

  @Test(arguments: CodedPNG.kinds.indices)
  func `the pixels of each kind are those of libvips, for any filters and chunks`(
    kind: Int
  ) throws {
    var random = SeededGenerator(seed: UInt64(kind))
    for round in 0..<40 {
      // Given: rows of any length, also shorter than a vector, with filters in any order
      var png = Self.png(CodedPNG.kinds[kind], &random, width: round < 12 ? round + 1 : nil)
      png.filters = round < 5 ? [UInt8(round)] : (0..<9).map { _ in UInt8(random.number(0...4)) }
      png.chunkBytes = round % 3 == 0 ? random.number(1...40) : nil
      if CodedPNG.kinds[kind].type == 3, round % 2 == 0 {
        png.before.append(
          ("tRNS", random.bytes(random.number(1...1 << CodedPNG.kinds[kind].depth))))
      }
      // When
      let (mine, libvips) = try both(png.bytes)
      // Then
      #expect(mine == libvips, "round \(round)")
    }
  }

  @Test(arguments: [3, 4])
  func `an encoder's filters and compression are undone like libvips does`(bands: Int) throws {
    let scene = Pixels.scene(width: 301, height: 97, alpha: bands == 4)
    let deep = scene.values.enumerated().map { UInt16($1) << 8 | UInt16($0 & 255) }
    for source in [
      try TestImages.encode(scene, as: ".png[filter=all]"),
      try TestImages.encode(
        deep, width: 301, bands: bands, as: .rgb16, suffix: ".png[filter=all]"),
    ] {
      let (mine, libvips) = try both(source)
      #expect(mine == libvips)
    }
  }

  @Test func `what else a PNG may be is left to libvips`() throws {
    var random = SeededGenerator(seed: 1)
    let grey = Self.png((0, 8), &random, width: 20)
    #expect(try !isLeft(grey.bytes))
    // Interlaced
    var other = grey
    other.isInterlaced = true
    #expect(try isLeft(other.bytes))
    // A transparent colour
    other = grey
    other.before = [("tRNS", [0, 7])]
    #expect(try isLeft(other.bytes))
    // An index beyond the palette
    var indexed = Self.png((3, 4), &random, width: 20)
    indexed.before = [("PLTE", random.bytes(3 * 15))]
    indexed.samples[7] = 15
    #expect(try isLeft(indexed.bytes))
    // More alphas than colours
    indexed.before = [("PLTE", random.bytes(3 * 16)), ("tRNS", random.bytes(17))]
    #expect(try isLeft(indexed.bytes))
    // A window that distances may exceed: 256 bytes, for more rows than that
    other = Self.png((0, 8), &random, width: 50)
    other.headOfStream = [0x08, 0x1d]
    #expect(other.data.count > 256)
    #expect(try isLeft(other.bytes))
    other = Self.png((0, 8), &random, width: 5)
    other.headOfStream = [0x08, 0x1d]
    #expect(try !isLeft(other.bytes))
    // Chunks that may come between, of any kind, are not looked at
    other = grey
    other.before = [
      ("tEXt", Array("Title\0A".utf8)), ("gAMA", [0, 0, 177, 143]),
      ("pHYs", [0, 0, 0x2e, 0x23, 0, 0, 0x17, 0x12, 1]),
    ]
    other.after = [("tIME", [7, 230, 1, 2, 3, 4, 5])]
    #expect(try !isLeft(other.bytes))
  }

  @Test func `more pixels than the memory for them are left to libvips`() throws {
    // Given: a bit a pixel, so that the rows would fit
    let side = 5_100
    let black = TestImages.blackPNG(width: side, height: side)
    try black.withUnsafeBytes {
      let header = try SourceHeader(of: $0, as: .png, frame: nil, failOn: .warning)
      #expect(header.size.pixels * header.pixelBytes > PNGPixels.maximumBytes)
      #expect(PNGPixels.memory(of: $0, header) == nil)
      let image = PNGPixels.image($0, header)
      let isLeft = image == nil
      #expect(isLeft)
    }
  }

  @Test(arguments: 0..<60 as Range<UInt64>)
  func `damage is refused, or decoded like libvips does`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let png = Self.png(CodedPNG.kinds[Int(seed) % CodedPNG.kinds.count], &random)
    // Given: another stream with the right checksums of its chunks
    var data = png.data
    for _ in 0..<random.number(1...3) { data[random.number(0...data.count - 1)] ^= 1 << 3 }
    if seed % 4 == 0 { data.removeLast(random.number(1...data.count - 1)) }
    if seed % 5 == 0 { data += random.bytes(7) }
    var bytes = CodedPNG.signature + png.bytes[8..<33]
    for (name, content) in png.before { bytes += CodedPNG.chunk(name, content: content) }
    bytes += CodedPNG.chunk("IDAT", content: data) + CodedPNG.chunk("IEND", content: [])
    // When, then
    guard let (mine, libvips) = try? both(bytes) else { return }
    #expect(mine == nil || mine == libvips)
  }
}

extension SeededGenerator {
  mutating func number(_ range: ClosedRange<Int>) -> Int {
    .random(in: range, using: &self)
  }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in .random(in: 0...255, using: &self) }
  }
}
