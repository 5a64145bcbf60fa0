// KeptPaletteTests: PNGs of sources with a palette.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct KeptPaletteTests {
  private static let size = PixelSize(width: 240, height: 160)

  /// The scene in 256 colours, in each format that has a palette.
  private static func sources(alpha: Bool = false) throws -> [(format: ImageFormat, bytes: [UInt8])]
  {
    // Grain, since a smooth scene takes fewer bytes with filters.
    var random = SeededGenerator(seed: 41)
    var scene = Pixels.scene(width: size.width, height: size.height, alpha: alpha)
    for index in scene.values.indices where index % scene.bands < 3 {
      scene.values[index] &+= UInt8.random(in: 0...14, using: &random)
    }
    let png = try TestImages.encode(scene, as: ".png[palette]")
    let gif = try TestImages.encode(scene, as: ".gif")
    return [(.png, png), (.gif, gif), (.bmp, bitmap(of: scene))]
  }

  /// A BMP with six levels of each colour.
  private static func bitmap(of scene: Pixels) -> [UInt8] {
    var bitmap = CodedBitmap(size: scene.size, depth: 8)
    let levels: [UInt8] = [0, 51, 102, 153, 204, 255]
    for red in levels {
      for green in levels { bitmap.palette += levels.map { [red, green, $0] } }
    }
    for index in 0..<scene.size.pixels {
      var number: UInt32 = 0
      for sample in scene.values[index * scene.bands..<index * scene.bands + 3] {
        number = number * 6 + (UInt32(sample) + 25) / 51
      }
      bitmap.pixels.append(number)
    }
    return bitmap.file
  }

  private static func limits(keepsPalettes: Bool) -> ImagingLimits {
    ImagingLimits { $0.keepsPalettes = keepsPalettes }
  }

  private static let changes: [(name: String, change: @Sendable (inout Transform) -> Void)] = [
    ("smaller", { _ in }), ("interlaced", { $0.output.isProgressive = true }),
    ("round", { $0.effects.radius = .maximum }), ("blurred", { $0.effects.blur = 2 }),
    ("with metadata", { $0.stripsMetadata = false }),
    (
      "turned and cut",
      {
        $0.width = 100
        $0.height = 100
        $0.fit = .cover
        $0.rotation = .quarter
      }
    ),
  ]

  @Test(arguments: changes.indices)
  func `a PNG of a source with a palette has a palette, and looks the same in fewer bytes`(
    index: Int
  ) throws {
    for source in try Self.sources() {
      let (all, kept) = try (
        Made(
          source.bytes, limits: Self.limits(keepsPalettes: false), width: 150, format: .png,
          change: Self.changes[index].change),
        Made(source.bytes, width: 150, format: .png, change: Self.changes[index].change)
      )
      #expect(kept.size == all.size)
      #expect(kept.bytes[25] == 3, "\(source.format), \(Self.changes[index].name)")
      #expect(kept.bytes[28] == all.bytes[28])
      #expect(Double(kept.bytes.count) < 0.8 * Double(all.bytes.count))
      let pixels = try [all, kept].map { Self.onWhite(try Pixels(decoding: $0.bytes)) }
      #expect(pixels[0].meanDifference(to: pixels[1]) < 2)
    }
  }

  private static func onWhite(_ pixels: Pixels) -> Pixels {
    guard pixels.bands == 4 else { return pixels }
    return Pixels(width: pixels.size.width, height: pixels.size.height) { x, y in
      let pixel = pixels[x, y].map(Int.init)
      return pixel[..<3].map { UInt8((($0 - 255) * pixel[3]) / 255 + 255) }
    }
  }

  @Test func `transparency is kept`() throws {
    let source = try #require(try Self.sources(alpha: true).first)
    let made = try Made(source.bytes, width: 150, format: .png)
    #expect(made.bytes[25] == 3)
    let found = try Pixels(decoding: made.bytes)
    let wanted = Pixels.scene(width: 150, height: 100, alpha: true)
    #expect(found.bands == 4)
    for (x, y) in [(75, 20), (75, 60), (75, 95), (10, 90)] {
      #expect(abs(Int(found[x, y][3]) - Int(wanted[x, y][3])) < 12, "\(x), \(y)")
    }
  }

  @Test func `metadata is kept beside a palette`() throws {
    let source = try TestImages.described(width: 60, height: 40, as: ".png[palette]")
    let made = try Made(source, format: .png) { $0.stripsMetadata = false }
    #expect(made.bytes[25] == 3)
    let found = try TestImages.metadata(of: made.bytes)
    #expect(try #require(found["exif-data"]).contains(TestImages.exifMark))
    #expect(try #require(found["xmp-data"]).contains(TestImages.xmpMark))
  }

  @Test func `a source without a palette loses no colour`() throws {
    let scene = Pixels.scene(width: 240, height: 160)
    let source = try TestImages.encode(scene, as: ".png")
    let made = try Made(source, format: .png) { $0.rotation = .quarter }
    #expect(made.bytes[25] == 2)
    let found = try Pixels(decoding: made.bytes)
    for (x, y) in [(0, 0), (100, 80), (17, 151)] { #expect(found[159 - y, x] == scene[x, y]) }
  }

  @Test func `a part of a source with a palette has exactly its colours`() throws {
    for source in try Self.sources() {
      let made = try Made(source.bytes, format: .png) { $0.rotation = .quarter }
      #expect(made.bytes[25] == 3)
      let (found, wanted) = try (
        Pixels(decoding: made.bytes),
        Made(source.bytes) {
          $0.format = .tiff; $0.rotation = .quarter
        }
      )
      #expect(try found.values == Pixels(decoding: wanted.bytes).values)
    }
  }

  @Test func `maxbytes holds, with more pixels where there is a palette`() throws {
    for source in try Self.sources() {
      let (all, kept) = try (
        Made(source.bytes, limits: Self.limits(keepsPalettes: false), format: .png) {
          $0.maxBytes = 4_000
        },
        Made(source.bytes, format: .png) { $0.maxBytes = 4_000 }
      )
      #expect(max(all.bytes.count, kept.bytes.count) <= 4_000)
      #expect(kept.bytes[25] == 3)
      #expect(kept.size.pixels > all.size.pixels)
    }
  }

  @Test func `a palette that saves less than a tenth costs no colours`() throws {
    for size in [Self.size, PixelSize(width: 8, height: 8)] {
      let source = Self.bitmap(of: .scene(width: size.width, height: size.height))
      let (all, kept) = try (
        Made(
          source, limits: Self.limits(keepsPalettes: false), width: size.width * 5 / 8, format: .png
        ),
        Made(source, width: size.width * 5 / 8, format: .png)
      )
      #expect(kept.digest == all.digest)
    }
  }

  @Test func `what may take long, or is grey, has all colours`() throws {
    let source = try #require(try Self.sources().first)
    let large = try Made(source.bytes, width: 2_500, format: .png) { $0.sizing.enlarge = true }
    #expect(large.bytes[25] == 2)
    let grey = try Made(source.bytes, format: .png) { $0.effects.isGrayscale = true }
    #expect(grey.bytes[25] == 0)
  }

  @Test func `the estimate of a job counts the palette`() throws {
    let source = try #require(try Self.sources().first)
    let costs = try [true, false].flatMap { keepsPalettes in
      try Made.costs(of: source.bytes, limits: Self.limits(keepsPalettes: keepsPalettes)) {
        $0.format = .png
      }
    }
    #expect(costs.count == 2 && costs[0].seconds > 2 * costs[1].seconds)
    #expect(costs[0].bytes > costs[1].bytes)
  }
}
