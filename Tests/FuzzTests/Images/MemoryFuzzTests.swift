// MemoryFuzzTests: no answer depends on what a worker's memory held before.

import CLinux
import CVips
import Core
import TestSupport
import Testing

@Suite(
  .onOwnThreads, .enabled(if: !TestBuild.isAddressSanitized, "a sanitizer has its own allocator"))
struct MemoryFuzzTests {
  private static let limits: ImagingLimits = {
    var limits = ImagingLimits()
    // All damage is tolerated: decoders that continue after it leave most pixels unwritten.
    limits.failOn = .none
    limits.maximumPixels = 400_000
    limits.maximumFrames = 20
    return limits
  }()

  private static func oracle() throws -> ImagingOracle {
    try ImagingOracle(
      program: TestBuild.programFolder + "/pictor-imager",
      other: try TestImages.encode(
        Pixels(width: 300, height: 200, bands: 3) { x, y in
          [UInt8((x * 7 + y * 13) & 255), UInt8((x * y) & 255), UInt8((x ^ y) & 255)]
        }, as: ".png[compression=1]"))
  }

  /// Checks the answers to an input: all its pixels, and those of a small result.
  private static func check(_ input: [UInt8], with oracle: ImagingOracle) throws -> Bool {
    var all = Transform()
    all.output.format = .png
    var small = all
    small.sizing.width = 20
    let answers = try [all, small].map { try oracle.answers(to: input, $0, limits: limits) }
    for (first, second) in answers {
      try hold(first == second, "the answer depends on memory: \(first), \(second)")
    }
    if case .image? = answers.first?.0 { return true }
    return false
  }

  @Test func `answers do not depend on what memory held, whole inputs`() throws {
    let oracle = try Self.oracle()
    for seed in try MemorySeeds.all.get() {
      #expect(try Self.check(seed.bytes, with: oracle) == seed.isDecoded, "\(seed.name)")
    }
    #expect(oracle.deaths == 0)
  }

  @Test func `answers do not depend on what memory held, damaged inputs`() throws {
    let oracle = try Self.oracle()
    let seeds = try MemorySeeds.all.get()
    var decoded = 0
    try Fuzz.run(
      "memory", usual: 250,
      make: { generator in
        var bytes = seeds[generator.number(0...seeds.count - 1)].bytes
        guard generator.isOne(of: 2) else {
          Damage.apply(to: &bytes, words: FileSeeds.words, using: &generator)
          return bytes
        }
        // In the headers, where sizes are.
        var head = Array(bytes.prefix(200))
        Damage.apply(to: &head, words: FileSeeds.words, using: &generator)
        return head + bytes.dropFirst(200)
      },
      check: { decoded += try Self.check($0, with: oracle) ? 1 : 0 })
    #expect(decoded > 0)
    if FuzzSeeds.isLongRun { print("memory: \(decoded) decoded, \(oracle.deaths) workers died") }
  }

  @Test(.enabled(if: vips_version(1) < 16, "libvips 8.16 writes or refuses all of these images"))
  func `a decoder that leaves pixels unwritten shows what memory held`() throws {
    // given: images that libvips writes in part, decoded without check and the worker's malloc
    let seeds = try MemorySeeds.all.get().filter { !$0.isDecoded }
    // M_PERTURB of mallopt(3)
    let perturb: CInt = -6
    defer { mallopt(perturb, 0) }
    // when
    let shown = [0x5a, 0xc3 as CInt].map { byte in
      mallopt(perturb, byte)
      return seeds.map { try? Pixels(decoding: $0.bytes).values }
    }
    // then
    #expect(shown[0] != shown[1])
  }
}

/// The corpus of `MemoryFuzzTests`.
enum MemorySeeds {
  struct Seed {
    let name: String
    let bytes: [UInt8]
    /// Whether a worker makes an image of it, or refuses it.
    var isDecoded = true
  }

  static let all = Result<[Seed], any Error> {
    TestImages.start()
    let named = try FileSeeds.all().enumerated().map {
      Seed(name: "\($0.element.format) \($0.offset)", bytes: $0.element.bytes)
    }
    return try named + vips() + coded() + jpeg2000() + tiffs()
  }

  private static let scene = Pixels.scene(width: 90, height: 70)
  private static let grey = Pixels(width: 90, height: 70, bands: 1) { x, y in [UInt8(x + y)] }

  /// What libvips writes.
  private static func vips() throws -> [Seed] {
    let clear = Pixels.scene(width: 90, height: 70, alpha: true)
    return try [
      ".jpg", ".jpg[subsample-mode=off]", ".png[interlace]", ".png[palette]", ".webp",
      ".webp[lossless]", ".gif", ".jxl", ".jp2", ".jp2[tile-width=32,tile-height=32]",
      ".tif[compression=jpeg,tile,tile-width=32,tile-height=32]", ".tif[compression=lzw]",
      ".tif[compression=deflate,tile,tile-width=32,tile-height=32]", ".tif[compression=webp]",
      ".avif[effort=0]", ".heic[compression=hevc,effort=0]",
    ].map { Seed(name: $0, bytes: try TestImages.encode(scene, as: $0)) }
      + [".png", ".webp", ".gif", ".jp2", ".tif", ".avif[effort=0]"].map {
        Seed(name: "alpha \($0)", bytes: try TestImages.encode(clear, as: $0))
      }
      + [".jpg", ".png", ".tif", ".jp2", ".png[bitdepth=1]"].map {
        Seed(name: "grey \($0)", bytes: try TestImages.encode(grey, as: $0))
      }
      + [".png", ".tif", ".jp2"].map {
        Seed(name: "deep \($0)", bytes: try TestImages.encode(scene, as: $0, sixteenBits: true))
      } + [
        Seed(name: "frames", bytes: try TestImages.gif(width: 30, height: 20, frames: 4)),
        Seed(
          name: "frames of WebP",
          bytes: try TestImages.animatedWebP(width: 30, height: 20, frames: 4)),
        Seed(
          name: "CMYK", bytes: try TestImages.cmykJPEG(width: 40, height: 30, color: [9, 90, 9, 0])),
        Seed(name: "SVG", bytes: TestImages.svg(width: 40, height: 30)),
      ]
  }

  /// What the kit and other libraries write.
  private static func coded() throws -> [Seed] {
    let size = PixelSize(width: 21, height: 13)
    var bitmap = CodedBitmap(size: size, depth: 8)
    bitmap.palette = (0..<256).map { [UInt8($0), 9, UInt8(255 - $0)] }
    var plain = bitmap
    plain.pixels = (0..<size.pixels).map { UInt32($0 & 255) }
    // Runs that end early: the rest of the pixels is not stated.
    bitmap.compression = 1
    bitmap.runs = [9, 7, 0, 2, 3, 2, 5, 9, 0, 1]
    var icon = plain
    icon.clear = (0..<size.pixels).map { $0.isMultiple(of: 3) }
    return [
      Seed(name: "ICO", bytes: CodedBitmap.icon(of: [icon.icon])),
      Seed(name: "BMP", bytes: plain.file), Seed(name: "BMP in runs", bytes: bitmap.file),
      Seed(
        name: "4:2:0", bytes: try TestImages.jpeg(scene, as: .ycc, sampling: (2, 2), quality: 80)),
      Seed(
        name: "restarts",
        bytes: try TestImages.jpeg(scene, as: .ycc, progressive: true, restartInterval: 3)),
      Seed(name: "arithmetic", bytes: try TestImages.jpeg(scene, as: .ycc, arithmetic: true)),
      Seed(name: "JXL", bytes: try TestImages.jxl(scene)),
      Seed(name: "HEIC of 10 bits", bytes: try TestImages.heif(scene, isAVIF: false, bits: 10)),
    ]
  }

  private static func jpeg2000() throws -> [Seed] {
    func seed(
      _ name: String, isDecoded: Bool = true, change: (inout TestImages.JPEG2000Form) -> Void
    ) throws -> Seed {
      var form = TestImages.JPEG2000Form()
      change(&form)
      return Seed(name: name, bytes: try TestImages.jp2(scene, form), isDecoded: isDecoded)
    }
    return [
      try seed("image offset", isDecoded: false) { $0.offset = (20, 12) },
      try seed("image offset, tiles", isDecoded: false) {
        $0.offset = (20, 12)
        $0.tile = 32
        $0.isBare = true
      },
      try seed("equal offsets", isDecoded: false) {
        $0.offset = (20, 12)
        $0.tileOffset = (20, 12)
        $0.tile = 32
      },
      try seed("sub-sampled") {
        $0.sampling = 2
        $0.isBare = true
      },
      try seed("parts of tiles") {
        $0.isInParts = true
        $0.tile = 32
      },
    ]
  }

  /// Tiles that are smaller than their place.
  private static func tiffs() throws -> [Seed] {
    let small = Pixels(width: 8, height: 8, bands: 1) { x, y in [UInt8(x * y * 4)] }
    var form = TestImages.JPEG2000Form()
    form.isBare = true
    let tiles = [
      (33_005, try TestImages.jp2(small, form)),
      (7, try TestImages.encode(small, as: ".jpg[strip]")),
    ]
    return tiles.map { compression, tile in
      Seed(
        name: "small tiles of compression \(compression)",
        bytes: TiledTIFF(compression: compression, tile: tile).bytes, isDecoded: false)
    }
  }
}
