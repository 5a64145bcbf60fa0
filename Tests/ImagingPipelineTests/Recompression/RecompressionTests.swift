// RecompressionTests: JPEGs and PNGs in fewer bytes, with the same coefficients, pixels and chunks.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct RecompressionTests {
  private static let sizes = [
    PixelSize(width: 200, height: 150), PixelSize(width: 121, height: 83),
    PixelSize(width: 7, height: 9),
  ]

  @Test(arguments: JPEGTurnTests.kinds, sizes)
  func `a recompressed JPEG has the same pixels and never more bytes`(
    kind: JPEGTurnTests.Kind, size: PixelSize
  ) throws {
    let source = try kind.jpeg(size)
    let result = try Recompressed(source)
    #expect(result.bytes.count <= source.count)
    #expect(try Pixels(decoding: result.bytes).values == Pixels(decoding: source).values)
    #expect(result.report.content.image?.size == size)
    if kind.isProgressive { #expect(result.bytes == source) }
    if result.bytes != source, size.width > 100 { #expect(isProgressive(result.bytes)) }
  }

  @Test func `a photograph becomes smaller and progressive, once`() throws {
    let source = try TestImages.encode(.noisy(width: 400, height: 300), as: ".jpg[Q=80]")
    let once = try Recompressed(source).bytes
    #expect(once.count < source.count && isProgressive(once))
    #expect(try Recompressed(once).bytes == once)
  }

  @Test func `profile, Exif and comments stay`() throws {
    let source = try TestImages.described(width: 300, height: 200, as: ".jpg")
    let result = try Recompressed(source).bytes
    #expect(result != source)
    let before = try TestImages.metadata(of: source)
    #expect(!before.isEmpty)
    #expect(try TestImages.metadata(of: result) == before)
  }

  @Test func `a damaged JPEG is refused or stays as it is`() throws {
    let source = try TestImages.jpeg(width: 120, height: 90)
    for count in stride(from: 2, to: source.count, by: 61) {
      let cut = Array(source[..<count])
      if let result = try? Recompressed(cut) { #expect(result.bytes == cut) }
    }
  }

  @Test func `limits hold, and an expensive job asks first`() throws {
    let source = try TestImages.jpeg(width: 120, height: 90)
    let limits = ImagingLimits { $0.maximumPixels = 100 }
    #expect(throws: ImageError.tooManyPixels(pixels: 10_800, limit: 100)) {
      _ = try Recompressed(source, limits: limits)
    }
    source.withUnsafeBytes { bytes in
      _ = #expect(throws: ImageError.cancelled) {
        _ = try Pipeline().recompress(bytes, limits: ImagingLimits()) { _ in false }.count
      }
    }
    #expect(throws: ImageError.self) {
      _ = try Recompressed(try TestImages.webp(width: 20, height: 20))
    }
  }

  private func isProgressive(_ jpeg: [UInt8]) -> Bool { jpeg.contains([0xff, 0xc2]) }

  private static func png(
    colorType: Int, depth: Int, size: PixelSize, isInterlaced: Bool, seed: UInt64 = 1
  ) -> CodedPNG {
    var random = SeededGenerator(seed: seed)
    let top = 1 << depth - 1
    let channels = CodedPNG.channels(colorType)
    let samples = (0..<size.pixels * channels).map { index in
      min(
        max(
          (index / channels % size.width) * top / size.width
            + Int.random(in: -1...1, using: &random), 0), top)
    }
    let palette = (0..<(1 << min(depth, 8)) * 3).map { UInt8($0 * 7 & 255) }
    return CodedPNG(
      size: size, colorType: colorType, depth: depth, samples: samples, isInterlaced: isInterlaced,
      before: (colorType == 3 ? [("PLTE", palette)] : []) + [("tEXt", Array("Title\0A test".utf8))],
      after: [("tIME", [7, 230, 1, 2, 3, 4, 5])])
  }

  @Test(arguments: CodedPNG.kinds, [false, true])
  func `a PNG of each kind has the same pixels, palette and chunks in fewer bytes`(
    kind: (Int, Int), isInterlaced: Bool
  ) throws {
    for size in [PixelSize(width: 67, height: 41), PixelSize(width: 3, height: 2)] {
      let source = Self.png(
        colorType: kind.0, depth: kind.1, size: size, isInterlaced: isInterlaced
      ).bytes
      let result = try Recompressed(source).bytes
      #expect(result.count <= source.count)
      if size.width > 60 { #expect(result.count < source.count) }
      #expect(try chunks(result) == chunks(source))
      let rows = [result, source].map { bytes in
        try? TestImages.encode(
          Pixels(decoding: bytes, options: kind.1 == 16 ? nil : ""), as: ".png")
      }
      #expect(rows[0] == rows[1])
      #expect(try Recompressed(result).bytes == result, "no fewer the second time")
    }
  }

  @Test(arguments: 0..<200 as Range<UInt64>)
  func `filters are undone exactly, for any rows`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let (type, depth) = CodedPNG.kinds.randomElement(using: &random) ?? (0, 8)
    let size = PixelSize(
      width: .random(in: 1...40, using: &random), height: .random(in: 1...20, using: &random))
    var header = [0, 0, 0, UInt8(size.width), 0, 0, 0, UInt8(size.height)]
    header += [UInt8(depth), UInt8(type), 0, 0, UInt8.random(in: 0...1, using: &random)]
    let layout = try #require(header.withUnsafeBytes { PNGLayout(header: $0) })
    // Given: random rows, some of them smooth
    var plain: [UInt8] = []
    for pass in layout.passes {
      for _ in 0..<pass.rows {
        plain.append(0)
        let noise = UInt8.random(in: 0...255, using: &random)
        for index in 0..<pass.rowBytes {
          plain.append(
            UInt8(truncatingIfNeeded: index) &+ UInt8.random(in: 0...noise, using: &random))
        }
      }
    }
    #expect(plain.count == layout.byteCount)
    for filtering in PNGFilter.allCases.map(PNGFiltering.each) + [.leastSum, .leastEntropy] {
      // When
      let filtered = layout.filtered(plain, by: filtering)
      // Then
      #expect(filtered.count == plain.count)
      #expect(layout.unfiltered(filtered) == plain)
    }
    var unknown = plain
    unknown[0] = 5
    #expect(layout.unfiltered(unknown) == nil)
  }

  @Test(arguments: 0..<100 as Range<UInt64>)
  func `a damaged PNG is refused or stays as it is`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let source = Self.png(
      colorType: 2, depth: 8, size: PixelSize(width: 30, height: 20), isInterlaced: seed % 2 == 0
    ).bytes
    var damaged = source
    if seed % 3 == 0 { damaged.removeLast(Int.random(in: 1..<source.count, using: &random)) }
    for _ in 0..<3 where !damaged.isEmpty {
      let place = Int.random(in: 0..<damaged.count, using: &random)
      damaged[place] ^= 1 << UInt8.random(in: 0..<8, using: &random)
    }
    guard damaged != source, let result = try? Recompressed(damaged) else { return }
    #expect(result.bytes == damaged)
  }

  @Test func `headers that lie about their size are refused`() {
    func layout(width: [UInt8], height: [UInt8], _ rest: [UInt8]) -> PNGLayout? {
      (width + height + rest).withUnsafeBytes { PNGLayout(header: $0) }
    }
    let one: [UInt8] = [0, 0, 0, 1]
    #expect(layout(width: one, height: one, [8, 2, 0, 0, 0])?.byteCount == 4)
    #expect(layout(width: [0, 0, 0, 0], height: one, [8, 2, 0, 0, 0]) == nil)
    #expect(layout(width: [255, 255, 255, 255], height: one, [8, 2, 0, 0, 0]) == nil)
    #expect(layout(width: [0, 15, 0, 0], height: [0, 15, 0, 0], [16, 6, 0, 0, 0]) == nil)
    for rest: [UInt8] in [
      [3, 2, 0, 0, 0], [8, 5, 0, 0, 0], [8, 2, 1, 0, 0], [8, 2, 0, 1, 0], [8, 2, 0, 0, 2],
    ] {
      #expect(layout(width: one, height: one, rest) == nil)
    }
  }

  /// The names and contents of all chunks but the compressed rows.
  private func chunks(_ png: [UInt8]) throws -> [[UInt8]] {
    try png.withUnsafeBytes { bytes in
      var chunks = PNGChunks(bytes)
      var found: [[UInt8]] = []
      while chunks.position < png.count {
        let chunk = try chunks.next()
        if !chunk.isOf("IDAT") { found.append(Array(chunk.checked)) }
      }
      return found
    }
  }
}

/// A recompressed variant with its bytes copied out.
struct Recompressed {
  let report: RenderReport
  let bytes: [UInt8]

  /// Recompresses a variant.
  init(_ variant: [UInt8], limits: ImagingLimits = ImagingLimits()) throws {
    TestImages.start()
    (report, bytes) = try GuardedBytes(variant).withBytes { bytes in
      let image = try Pipeline().recompress(bytes, limits: limits)
      return (image.report, image.withUnsafeBytes { Array($0) })
    }
  }
}
