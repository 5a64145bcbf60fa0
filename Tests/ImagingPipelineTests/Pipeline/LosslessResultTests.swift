// LosslessResultTests: a request without pixel changes returns the source's own pixels.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct LosslessResultTests {
  private static let traces = [
    "Exif", "EXIF", "eXIf", "XMP", "8BIM", "ICC_PROFILE", "iCCP", "ICCP", "a comment", "behind",
    "thumbnail",
  ]
  private static let scene = Pixels.noisy(width: 320, height: 192)

  // MARK: Sources

  private static func segment(_ marker: UInt8, content: [UInt8]) -> [UInt8] {
    [0xff, marker] + CodedPNG.big(content.count + 2, width: 2) + content
  }

  /// Returns a TIFF directory with only the orientation (EXIF 2.32, 4.6.4).
  private static func exif(_ orientation: Int) -> [UInt8] {
    Array("Exif\0\0MM".utf8) + CodedPNG.big(42, width: 2) + CodedPNG.big(8, width: 4)
      + CodedPNG.big(1, width: 2)
      + CodedPNG.big(0x0112, width: 2) + CodedPNG.big(3, width: 2) + CodedPNG.big(1, width: 4)
      + CodedPNG.big(orientation, width: 2) + [0, 0] + CodedPNG.big(0, width: 4)
      + Array("thumbnail".utf8)
  }

  /// Returns a JPEG with the metadata that cameras and editors write.
  private static func described(
    _ pixels: Pixels = scene, orientation: Int = 1, as colors: TestImages.JPEGColors = .ycc,
    sampling: (Int, Int) = (2, 2), quality: Int = 60, progressive: Bool = false
  ) throws -> [UInt8] {
    let jpeg = try TestImages.jpeg(
      pixels, as: colors, sampling: (sampling.0, sampling.1), progressive: progressive,
      quality: quality)
    let more =
      segment(0xe1, content: exif(orientation))
      + segment(0xe1, content: Array("http://ns.adobe.com/xap XMP".utf8))
      + segment(0xed, content: Array("Photoshop 3.0\u{0}8BIM".utf8))
      + segment(0xe0, content: Array("JFXX\0thumbnail".utf8))
      + segment(0xfe, content: Array("a comment".utf8))
      + segment(0xe2, content: Array("MPF\0".utf8))
    // The JFIF or Adobe segment stays first.
    let first = 4 + Int(jpeg[4]) << 8 + Int(jpeg[5])
    return Array(jpeg[..<first]) + more + jpeg[first...] + Array("behind the end".utf8)
  }

  private func hasTraces(_ bytes: [UInt8]) -> [String] { Self.traces.filter { bytes.contains($0) } }

  // MARK: JPEG

  @Test(
    arguments: [(TestImages.JPEGColors.grey, 1), (.ycc, 1), (.ycc, 2), (.rgb, 1)], [false, true])
  func `a JPEG keeps its pixels and loses its metadata`(
    coded: (colors: TestImages.JPEGColors, sampling: Int), isProgressive: Bool
  ) throws {
    // Given
    let isGrey = coded.colors == .grey
    let pixels = isGrey ? Pixels.noisy(width: 320, height: 192, bands: 1) : Self.scene
    let source = try Self.described(
      pixels, as: coded.colors, sampling: (coded.sampling, coded.sampling),
      progressive: isProgressive)
    // At the default quality, chroma at half the resolution takes so few bytes that the encoding is
    // sent.
    let quality = isGrey || coded.sampling == 2 ? nil : 100
    // When
    let made = try Made(source) { $0.quality = quality }
    // Then
    #expect(made.format == .jpeg && made.bytes.count < source.count)
    #expect(try made.pixels().values == Pixels(decoding: source).values)
    #expect(hasTraces(made.bytes).isEmpty)
    #expect(made.quality == nil && made.scaledDownFrom == nil)
    // A progressive result on request has the same pixels.
    let progressive = try Made(source) {
      $0.progressive = true
      $0.quality = quality
    }
    #expect(progressive.bytes.count < source.count)
    #expect(progressive.bytes.adjacent(0xff, to: 0xc2))
    #expect(try progressive.pixels().values == Pixels(decoding: source).values)
  }

  @Test func `an unchanged RGB JPEG keeps its Adobe marker, colours and pixels`()
    throws
  {
    // Given
    let source = try Self.described(as: .rgb, sampling: (1, 1))
    // When
    let made = try Made(source) { $0.quality = 100 }
    let turned = try Made(source) {
      $0.rotation = .half
      $0.quality = 100
    }
    let encoded = try Made(source) { $0.quality = 30 }
    // Then
    let pixels = try Pixels(decoding: source)
    for made in [made, turned] {
      #expect(made.quality == nil && made.bytes.contains("Adobe"))
      #expect(hasTraces(made.bytes).isEmpty && made.bytes.count < source.count)
    }
    #expect(try made.pixels().values == pixels.values)
    #expect(try turned.pixels().largestDifference(to: pixels.upright(from: 3)) <= 1)
    #expect(encoded.bytes.count < made.bytes.count && !encoded.bytes.contains("Adobe"))
    #expect(try encoded.pixels().psnr(to: pixels) > 20)
  }

  @Test func `contradictory Adobe segments are not kept`() throws {
    let source = try Self.described(as: .rgb, sampling: (1, 1))
    let adobe = Self.segment(0xee, content: Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 1])
    #expect(Stripping.stripped(source, as: .jpeg) != nil)
    #expect(Stripping.stripped(Array(source[..<2]) + adobe + source[2...], as: .jpeg) == nil)
  }

  @Test func `a tolerated damaged source is encoded again and never passed on`() throws {
    // Given
    let whole = try Self.described(orientation: 3)
    let damaged = Array(whole.prefix(whole.count * 2 / 3))
    let limits = ImagingLimits { $0.failOn = .none }
    // When
    let made = try Made(damaged, limits: limits)
    // Then: the result is intact.
    #expect(made.isDamaged && made.quality != nil)
    #expect(try !Made(made.bytes).isDamaged)
    #expect(throws: ImageError.self) { try Made(damaged) }
  }

  @Test(arguments: 1...8, [PixelSize(width: 320, height: 192), PixelSize(width: 300, height: 200)])
  func `a rotated photo is rendered upright and no larger than the source`(
    tag: Int, size: PixelSize
  ) throws {
    // Given: the second size allows a lossless turn only for 1, 5 and two other tags.
    let upright = Pixels.noisy(width: size.width, height: size.height)
    let source = try Self.described(upright.stored(forOrientation: tag), orientation: tag)
    let expected = try Pixels(decoding: source).upright(from: tag)
    // When
    let made = try Made(source)
    // Then
    #expect(made.size == size && made.format == .jpeg)
    #expect(made.bytes.count <= source.count)
    #expect(hasTraces(made.bytes).isEmpty)
    let isLossless = size.width == 320 || tag == 1 || tag == 5
    let likeness = try made.pixels().psnr(to: expected)
    #expect(likeness > (isLossless ? 45 : 25))
    if isLossless { #expect(made.quality == nil) }
  }

  @Test func `rotate and flip are lossless, on top of the orientation`() throws {
    // Given
    let source = try Self.described(Self.scene.stored(forOrientation: 6), orientation: 6)
    let expected = try Pixels(decoding: source).upright(from: 6)
    // When
    let made = try Made(source) {
      $0.rotation = .half
      $0.flip = .both
    }
    let half = try Made(source) { $0.rotation = .half }
    // Then
    #expect(try made.pixels().psnr(to: expected) > 45)
    #expect(try half.pixels().psnr(to: expected.upright(from: 3)) > 45)
  }

  @Test func `a foreign profile is converted, and the result is no larger than the source`()
    throws
  {
    // Given
    let profile = LittleCMS.profile(LittleCMS.adobeRGB, gamma: 2.2)
    let jpeg = try TestImages.jpeg(Self.scene, as: .ycc, sampling: (2, 2), quality: 60)
    let icc = Self.segment(0xe2, content: Array("ICC_PROFILE\0\u{1}\u{1}".utf8) + profile)
    let source = Array(jpeg[..<20]) + icc + jpeg[20...]
    let reference = LittleCMS.sRGB(
      of: try Pixels(decoding: source).values, bands: 3, profile: profile)
    // When
    let made = try Made(source)
    // Then
    #expect(made.bytes.count <= source.count && hasTraces(made.bytes).isEmpty)
    let width = Self.scene.size.width
    let height = Self.scene.size.height
    let expected = Pixels(width: width, height: height) { x, y in
      Array(reference[(y * width + x) * 3..<(y * width + x) * 3 + 3])
    }
    #expect(try made.pixels().psnr(to: expected) > 25)
  }

  @Test func `a changed pixel, kept metadata or a named quality requires encoding`() throws {
    // Given
    let source = try Self.described()
    let own = try Pixels(decoding: source).values
    let changes: [(inout Transform) -> Void] = [
      { $0.width = 100 },
      { $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 320, height: 96)) },
      { $0.effects.isGrayscale = true }, { $0.format = .webp }, { $0.limitBytes = 40_000 },
    ]
    // When, then
    for change in changes { #expect(try Made(source, change: change).pixels().values != own) }
    #expect(try Made(source) { $0.stripsMetadata = false }.bytes.contains("Exif"))
    let small = try Made(source) { $0.quality = 20 }
    #expect(small.bytes.count < source.count / 2)
    // A requested quality may give more bytes, but never more than the source's own pixels take.
    #expect(try Made(source) { $0.quality = 95 }.pixels().values == own)
  }

  @Test func `an encoding replaces the source's pixels if it saves more than a tenth`() throws {
    // Given
    let source = try Self.described()
    let own = try Made(source) { $0.quality = 100 }.bytes
    let pixels = try Pixels(decoding: source)
    let png = try TestImages.encode(pixels, as: ".png")
    var sent: Set<Bool> = []
    for quality in stride(from: 40, through: 76, by: 3) {
      // When
      let made = try Made(source) { $0.quality = quality }.bytes
      let encoded = try Made(png) {
        $0.format = .jpeg
        $0.quality = quality
      }.bytes
      // Then
      let saves = encoded.count < own.count - own.count / 10
      #expect(made == (saves ? encoded : own))
      if encoded.count < own.count { sent.insert(saves) }
    }
    #expect(sent == [true, false])
  }

  @Test func `maxbytes keeps the pixels if the stripped source fits`() throws {
    // Given
    let source = try Self.described()
    let stripped = try Made(source).bytes.count
    // When
    let fitting = try Made(source) { $0.maxBytes = stripped }
    let tight = try Made(source) { $0.maxBytes = stripped / 2 }
    // Then
    #expect(try fitting.pixels().values == Pixels(decoding: source).values)
    #expect(tight.bytes.count <= stripped / 2 && tight.quality != nil)
  }

  // MARK: PNG and WebP

  @Test func `a PNG keeps its data and loses text, Exif and an sRGB profile`() throws {
    // Given: data smaller than any available encoder would write.
    let drawing = Pixels(width: 90, height: 60, bands: 1) { x, y in
      [UInt8((x / 30 + y / 20) % 2) * 255]
    }
    let png = try TestImages.encode(drawing, as: ".png[bitdepth=1,palette,compression=9,strip]")
    let chunks =
      CodedPNG.chunk("tEXt", content: Array("Comment\0a comment".utf8))
      + CodedPNG.chunk("iTXt", content: Array("XML:com.adobe.xmp\0\0\0\0\0XMP".utf8))
      + CodedPNG.chunk(
        "pHYs", content: CodedPNG.big(2_835, width: 4) + CodedPNG.big(2_835, width: 4) + [1])
    let source = Array(png[..<33]) + chunks + png[33...] + Array("behind".utf8)
    // When
    let made = try Made(source)
    // Then
    #expect(made.format == .png && made.bytes.count < source.count - chunks.count + 30)
    #expect(hasTraces(made.bytes).isEmpty)
    #expect(try made.pixels().values == Pixels(decoding: png).values)
    #expect(Stripping.stripped(source, as: .png)?.contains("pHYs") == true)
    // A chunk that pixels do not need is dropped if its checksum is wrong: decoders may refuse it.
    var damaged = source
    damaged[33 + chunks.count - 1] ^= 1
    let whole = Stripping.stripped(source, as: .png)
    let less = Stripping.stripped(damaged, as: .png)
    #expect(whole?.count == (less?.count ?? 0) + 12 + 9)
  }

  @Test func `a WebP keeps pixels, alpha and frames with matching flags`() throws {
    for (alpha, frames) in [(false, 1), (true, 1), (false, 4)] {
      // Given
      let bare = try TestImages.bareWebP(
        width: 64, height: 48, alpha: alpha, frames: frames, isExtended: true)
      var source =
        bare + Self.chunk("EXIF", content: Self.exif(1))
        + Self.chunk("XMP ", content: Array("XMP".utf8))
      source[20] |= 0x0c
      source.replaceSubrange(4..<8, with: CodedBitmap.little(source.count - 8, width: 4))
      // When
      let stripped = try #require(Stripping.stripped(source, as: .webp))
      let made = try Made(source) { $0.format = .webp }
      // Then
      #expect(hasTraces(stripped).isEmpty && stripped.count <= bare.count)
      #expect(try Pixels(decoding: stripped).values == Pixels(decoding: bare).values)
      #expect(made.frames == frames && made.bytes.count <= source.count)
      #expect(hasTraces(made.bytes).isEmpty)
      let isExtended = stripped[12..<16].elementsEqual("VP8X".utf8)
      #expect(isExtended == (alpha || frames > 1))
      if isExtended { #expect(stripped[20] & 0x2c == 0) }
    }
  }

  private static func chunk(_ name: String, content: [UInt8]) -> [UInt8] {
    Array(name.utf8) + CodedBitmap.little(content.count, width: 4) + content
      + (content.count % 2 == 1 ? [0] : [])
  }

  @Test func `stripping is idempotent and handles damage without a crash`() throws {
    let all: [(ImageFormat, [UInt8])] = [
      (.jpeg, try Self.described()), (.png, try TestImages.png(width: 40, height: 30)),
      (.webp, try TestImages.bareWebP(width: 40, height: 30, frames: 3)),
    ]
    var random = SeededGenerator(seed: 9)
    for (format, bytes) in all {
      // Given
      let once = try #require(Stripping.stripped(bytes, as: format))
      // When, then
      #expect(Stripping.stripped(once, as: format) == once)
      for _ in 0..<3_000 {
        var damaged = Array(bytes.prefix(.random(in: 0...bytes.count, using: &random)))
        for _ in 0..<4 where !damaged.isEmpty {
          let place = Int.random(in: 0..<min(damaged.count, 2_000), using: &random)
          damaged[place] = .random(in: 0...255, using: &random)
        }
        if let result = Stripping.stripped(damaged, as: format) {
          #expect(result.count <= damaged.count + 8)
        }
      }
    }
  }
}

extension Stripping {
  fileprivate static func stripped(_ bytes: [UInt8], as format: ImageFormat) -> [UInt8]? {
    bytes.withUnsafeBytes { stripped($0, as: format) }
  }
}

extension [UInt8] {
  /// Returns whether the two bytes occur next to each other.
  fileprivate func adjacent(_ first: UInt8, to second: UInt8) -> Bool {
    zip(self, dropFirst()).contains { $0 == first && $1 == second }
  }
}
