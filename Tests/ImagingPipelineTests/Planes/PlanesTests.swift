// PlanesTests: AVIFs, HEICs and WebPs that are reduced before their conversion to RGB, beside the
// same pixels that are converted first.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct PlanesTests {
  /// Sides that are odd, and no multiple of a tile's.
  private static let odd = Kind.avif.scene

  enum Kind: String, CaseIterable {
    case avif, heic, webp

    /// A HEIC of odd sides would be a grid of one tile; the others' colour planes are odd as well.
    var scene: Pixels {
      self == .heic ? .textured(width: 332, height: 220) : .textured(width: 331, height: 219)
    }

    var suffix: String { self == .webp ? ".webp[Q=95,effort=1" : ".\(rawValue)[Q=90,effort=0" }

    func file(_ options: String = "") throws -> [UInt8] {
      try TestImages.encode(scene, as: "\(suffix)\(options)]")
    }

    func isPlanar(_ file: [UInt8]) throws -> Bool {
      guard self == .webp else { return try PlanarSource.isPlanar(file) }
      let size = try Pixels(decoding: file).size
      return file.withUnsafeBytes { WebPPlanes($0, size: size, isSmoothed: true) != nil }
    }
  }

  @Test(arguments: Kind.allCases, [330, 300, 240, 200, 166, 90, 83, 37, 5, 1])
  func `an image looks like one that is converted first`(kind: Kind, width: Int) throws {
    for options in kind == .webp ? [""] : [",subsample_mode=on", ",subsample_mode=off"] {
      let file = try kind.file(options)
      #expect(try kind.isPlanar(file))
      let (made, reference) = try PlanarSource.both(file) { $0.width = width }
      // libheif repeats each colour sample, so sharp edges of colours differ a little in a large
      // result. From a factor of 4 on, boxes are averaged first, sooner than in `Resampler`, and
      // the edges of HEVC's blocks are not filtered.
      let least =
        kind == .webp
        ? 36.0
        : width <= 90
          ? kind == .heic ? 35 : 36 : width > 200 && options.hasSuffix("on") ? 33 : 42
      #expect(made.psnr(to: reference) > least, "\(options)")
    }
  }

  @Test(arguments: Kind.allCases)
  func `regions, turns and other shapes look the same`(kind: Kind) throws {
    let file = try kind.file()
    let changes: [(inout Transform) -> Void] = [
      {
        $0.crop = PixelArea(x: 101, y: 33, size: PixelSize(width: 203, height: 151))
        $0.width = 90
      },
      {
        $0.crop = PixelArea(x: 1, y: 1, size: PixelSize(width: 330, height: 218))
        $0.width = 100
      },
      {
        $0.rotation = .quarter
        $0.flip = .horizontal
        $0.width = 73
      },
      {
        $0.rotation = .threeQuarters
        $0.width = 73
      },
      { ($0.width, $0.height, $0.fit) = (60, 210, .fill) },
      { ($0.width, $0.height, $0.fit) = (100, 100, .cover) },
      {
        $0.trim = 5
        $0.width = 100
      },
    ]
    for (index, change) in changes.enumerated() {
      let (made, reference) = try PlanarSource.both(file, change: change)
      #expect(made.psnr(to: reference) > (kind == .avif ? 38 : 36), "\(index)")
    }
  }

  @Test(arguments: Kind.allCases)
  func `a profile is applied after the reduction`(kind: Kind) throws {
    let profile = LittleCMS.profile(LittleCMS.adobeRGB, gamma: 2.2)
    let scene = kind.scene
    let (file, png) = try (
      TestImages.encode(
        scene.values, width: scene.size.width, bands: 3, as: .sRGB, profile: profile,
        suffix: kind.suffix + "]"),
      TestImages.encode(
        scene.values, width: scene.size.width, bands: 3, as: .sRGB, profile: profile,
        suffix: ".png")
    )
    #expect(try kind.isPlanar(file))
    let (made, reference) = try PlanarSource.results(of: file, png)
    #expect(made.psnr(to: reference) > (kind == .webp ? 32 : 34))
  }

  /// The scene with a box that describes its colours; without one if it has no coefficients.
  private static func avif(coefficients: UInt8?, isFullRange: Bool = true) throws -> [UInt8] {
    try HEIFFile(
      avif: Kind.avif.file(),
      colours: coefficients.map { HEIFBoxes.nclx(coefficients: $0, isFullRange: isFullRange) }
    ).bytes
  }

  @Test(arguments: [1, 5, 6, 9] as [UInt8], [true, false])
  func `the container's colour model counts`(coefficients: UInt8, isFullRange: Bool) throws {
    let grid = HEIFGrid {
      $0.tileProperties = [HEIFBoxes.nclx(coefficients: coefficients, isFullRange: isFullRange)]
    }
    for (file, full, limited) in [
      (try Self.avif(coefficients: coefficients, isFullRange: isFullRange), 42.0, 36.0),
      (try grid.file(of: Self.odd), 40, 35),
    ] {
      #expect(try PlanarSource.isPlanar(file))
      let (made, reference) = try PlanarSource.both(file) { $0.width = 150 }
      // libheif's factors for the limited range are up to 0.4 % higher than those of H.273.
      #expect(made.psnr(to: reference) > (isFullRange ? full : limited))
    }
  }

  @Test func `without the container's colour model the coded image's counts`() throws {
    let avif = try Self.avif(coefficients: nil)
    #expect(try PlanarSource.isPlanar(avif))
    let (made, reference) = try PlanarSource.both(avif) { $0.width = 150 }
    #expect(made.psnr(to: reference) > 42)
  }

  @Test(arguments: [(true, 8), (true, 10), (true, 12), (false, 10)])
  func `a deep image looks like the scene`(isAVIF: Bool, bits: Int) throws {
    let scene = Kind.heic.scene
    let file = try TestImages.heif(scene, isAVIF: isAVIF, bits: bits)
    #expect(try PlanarSource.isPlanar(file, of: scene.size))
    let png = try TestImages.encode(scene, as: ".png")
    let (made, reference) = try PlanarSource.results(of: file, png)
    #expect(made.psnr(to: reference) > 34)
  }

  @Test(arguments: [Kind.avif, .heic])
  func `a damaged image is left to libvips`(kind: Kind) throws {
    let size = kind.scene.size
    let file = try kind.file()
    let start = try #require(file.firstRange(of: Array("mdat".utf8))).upperBound
    // Given: zeros in place of the coded image, and another image than the header tells
    let empty = file[..<start] + [UInt8](repeating: 0, count: file.count - start)
    // When, then
    #expect(try !PlanarSource.isPlanar(Array(empty), of: size))
    #expect(Made.error(Array(empty), width: 100) != nil)
    for other in [
      PixelSize(width: size.width + (kind == .heic ? 2 : 1), height: size.height),
      PixelSize(width: 100, height: 66),
    ] {
      #expect(try !PlanarSource.isPlanar(file, of: other))
    }
    guard kind == .heic else { return }
    // A coded image that ends early
    let short = Array(file.prefix(file.count - 2_000)) + [UInt8](repeating: 0, count: 2_000)
    #expect(try !PlanarSource.isPlanar(short, of: size))
  }

  @Test func `WebPs without loss, with alpha, frames or damage are left to libvips`() throws {
    let webp = try Kind.webp.file()
    #expect(try !Kind.webp.isPlanar(try Kind.webp.file(",lossless")))
    #expect(try !Kind.webp.isPlanar(try TestImages.webp(width: 60, height: 40, alpha: true)))
    let frames = try TestImages.bareWebP(width: 60, height: 40, frames: 3)
    let size = PixelSize(width: 60, height: 40)
    #expect(frames.withUnsafeBytes { WebPPlanes($0, size: size, isSmoothed: true) == nil })
    let half = Array(webp.prefix(webp.count / 2))
    #expect(
      half.withUnsafeBytes { WebPPlanes($0, size: Kind.webp.scene.size, isSmoothed: true) == nil })
    #expect(Made.error(half) { $0.width = 100 } != nil)
    #expect(webp.withUnsafeBytes { WebPPlanes($0, size: size, isSmoothed: true) == nil })
  }

  @Test func `an AVIF of another colour model or with alpha is left to libvips`() throws {
    #expect(try !PlanarSource.isPlanar(try Self.avif(coefficients: 0)))
    // Alpha is another image of the file, which the header tells.
    let alpha = Pixels.textured(width: 331, height: 219, bands: 4)
    let avif = try TestImages.encode(alpha, as: ".avif[Q=90,effort=0]")
    #expect(try Made(avif, width: 120, format: .png).pixels().bands == 4)
  }

  // MARK: Turns and grids

  @Test(arguments: 1...8, [false, true])
  func `a turned image looks the same`(tag: Int, isAVIF: Bool) throws {
    let heif = try TestImages.heif(Kind.heic.scene, isAVIF: isAVIF, orientation: tag)
    #expect(try PlanarSource.isPlanar(heif))
    let changes: [(inout Transform) -> Void] = [
      { $0.width = 110 },
      {
        $0.crop = PixelArea(x: 21, y: 33, size: PixelSize(width: 103, height: 151))
        $0.width = 51
      },
      {
        $0.rotation = .quarter
        $0.flip = .horizontal
        $0.width = 73
      },
    ]
    for (index, change) in changes.enumerated() {
      let (made, reference) = try PlanarSource.both(heif, change: change)
      #expect(made.psnr(to: reference) > 36, "\(index)")
    }
  }

  @Test(arguments: [false, true], HEIFGrid.Place.allCases)
  func `a grid looks the same`(isAVIF: Bool, model: HEIFGrid.Place) throws {
    for isInMeta in [true, false] {
      let file = try HEIFGrid {
        $0.isAVIF = isAVIF
        $0.model = model
        $0.isInMeta = isInMeta
      }.file(of: Self.odd)
      #expect(try PlanarSource.isPlanar(file))
      // libheif 1.15 does not know the image's model: tiles that have it show the same.
      let plain = try HEIFGrid {
        $0.isAVIF = isAVIF
        $0.model = model == .image ? .nowhere : model
        $0.tileProperties = model == .image ? [HEIFBoxes.nclx(coefficients: 1)] : []
      }.file(of: Self.odd)
      for width in [300, 165, 60] {
        let made = try Made(file, width: width, format: .png).pixels()
        let reference = try PlanarSource.both(plain) { $0.width = width }.reference
        #expect(made.psnr(to: reference) > (width > 200 ? 33 : 36), "\(width)")
      }
    }
  }

  /// Pairs of boxes, whose order counts (ISO/IEC 23008-12, 6.5.10 and 6.5.12).
  private static let turns: [[(type: String, value: UInt8)]] = [
    [("irot", 1)], [("irot", 2), ("imir", 0)], [("irot", 3), ("imir", 1)],
    [("imir", 0), ("irot", 1)], [("imir", 1), ("irot", 3)],
  ]

  @Test(arguments: turns.indices, [false, true])
  func `a turned grid looks the same`(index: Int, isAVIF: Bool) throws {
    let file = try HEIFGrid {
      $0.isAVIF = isAVIF
      $0.turns = Self.turns[index]
    }.file(of: Self.odd)
    #expect(try PlanarSource.isPlanar(file))
    let (made, reference) = try PlanarSource.both(file) { $0.width = 100 }
    #expect(made.psnr(to: reference) > 36)
  }

  /// Areas of one tile and of several, along their edges and across.
  private static let areas = [
    PixelArea(x: 0, y: 0, size: PixelSize(width: 128, height: 96)),
    PixelArea(x: 128, y: 96, size: PixelSize(width: 128, height: 96)),
    PixelArea(x: 127, y: 95, size: PixelSize(width: 130, height: 98)),
    PixelArea(x: 256, y: 192, size: PixelSize(width: 75, height: 27)),
    PixelArea(x: 301, y: 3, size: PixelSize(width: 30, height: 213)),
  ]

  @Test(arguments: areas, [1, 4])
  func `a region of a grid is that of the whole image`(area: PixelArea, threads: Int) throws {
    let limits = ImagingLimits { $0.maximumThreads = threads }
    let file = try HEIFGrid().file(of: Self.odd)
    let png = try TestImages.encode(try Pixels(decoding: file), as: ".png[compression=1]")
    let images = try [file, png].map { source in
      try Made(source, limits: limits, width: area.size.width / 2, format: .png) { $0.crop = area }
        .pixels()
    }
    #expect(images[0].psnr(to: images[1]) > 36)
  }

  @Test func `a damaged tile makes every part of a grid undecodable`() throws {
    // Given: a grid whose last tile is damaged
    var file = try HEIFGrid().file(of: Self.odd)
    let tile = try #require(HEIFBoxes.first("mdat", in: file)).count / 12
    for index in file.count - tile..<file.count { file[index] = 0x55 }
    // When, then
    #expect(try !PlanarSource.isPlanar(file, of: Self.odd.size))
    for area in Self.areas {
      let error = Made.error(file, width: area.size.width / 2) { $0.crop = area }
      #expect(error != nil)
    }
  }

  @Test func `the filters of HEVC are left out from a factor of 4 on`() throws {
    let heic = try TestImages.encode(Kind.heic.scene, as: ".heic[Q=10,effort=0]")
    let size = Kind.heic.scene.size
    TestImages.start()
    let target = PixelSize(width: 83, height: 55)
    func reduced(isSmoothed: Bool) throws -> [UInt8]? {
      try heic.withUnsafeBytes { bytes in
        let image = try HEIFImage(of: bytes)?.reduced(
          to: target, showing: PixelArea(x: 0, y: 0, size: size), of: size, profile: [],
          decoding: .init(isSmoothed: isSmoothed, threads: 1))
        guard let image, let pixels = image.pixels else { return nil }
        return Array(UnsafeBufferPointer(start: pixels, count: target.pixels * 3))
      }
    }
    let smoothed = try #require(try reduced(isSmoothed: true))
    let raw = try #require(try reduced(isSmoothed: false))
    let made = try Made(heic, width: 83, format: .png).pixels()
    let (isRaw, isSmoothed) = (made.values == raw, made.values == smoothed)
    #expect(isRaw && !isSmoothed)
  }

  @Test func `a grid of other tiles, or of one plane, is left to libvips`() throws {
    let crop = HEIFBoxes.box(
      "clap",
      content: [100, 1, 80, 1, 0, 1, 0, 1].flatMap { HEIFBoxes.number($0, width: 4) })
    let kinds: [(inout HEIFGrid) -> Void] = [
      // Tiles that are cropped or turned.
      { $0.tileProperties = [crop] },
      { $0.tileProperties = [HEIFBoxes.box("irot", content: [1])] },
      // Tiles that do not cover the image, and some that lie outside.
      { $0.size = PixelSize(width: 400, height: 219) },
      { $0.size = PixelSize(width: 331, height: 100) },
    ]
    for (index, kind) in kinds.enumerated() {
      let file = try HEIFGrid(change: kind).file(of: Self.odd)
      #expect(file.withUnsafeBytes { HEIFImage(of: $0) == nil }, "\(index)")
    }
    let identity = HEIFGrid { $0.tileProperties = [HEIFBoxes.nclx(coefficients: 0)] }
    #expect(try !PlanarSource.isPlanar(try identity.file(of: Self.odd), of: Self.odd.size))
    let grey = try TestImages.encode(
      Pixels.textured(width: 332, height: 220, bands: 1), as: ".heic[Q=90,effort=0]")
    let made = try Made(grey) { $0.width = 100 }
    #expect(made.size == PixelSize(width: 100, height: 66))
  }
}

enum PlanarSource {
  /// Returns a source's result, and that of the same pixels stored without loss.
  static func both(
    _ source: [UInt8], change: @escaping (inout Transform) -> Void
  ) throws -> (made: Pixels, reference: Pixels) {
    let png = try TestImages.encode(try Pixels(decoding: source), as: ".png[compression=1]")
    return try results(of: source, png, change: change)
  }

  /// Returns the results of two sources as PNG.
  static func results(
    of source: [UInt8], _ reference: [UInt8],
    change: @escaping (inout Transform) -> Void = { $0.width = 120 }
  ) throws -> (made: Pixels, reference: Pixels) {
    func result(_ source: [UInt8]) throws -> Pixels {
      try Made(source) {
        $0.format = .png
        change(&$0)
      }.pixels()
    }
    return (try result(source), try result(reference))
  }

  /// Whether a source is reduced in planes.
  ///
  /// - Parameter size: The size of the upright image; `nil` for libheif's.
  static func isPlanar(_ source: [UInt8], of size: PixelSize? = nil) throws -> Bool {
    let size = try size ?? Pixels(decoding: source).size
    TestImages.start()
    return try source.withUnsafeBytes { bytes in
      let image = try HEIFImage(of: bytes)?.reduced(
        to: PixelSize(width: size.width / 2, height: size.height / 2),
        showing: PixelArea(x: 0, y: 0, size: size), of: size, profile: [],
        decoding: .init(isSmoothed: true, threads: 1))
      guard let image else { return false }
      return image.size.width == size.width / 2
    }
  }
}
