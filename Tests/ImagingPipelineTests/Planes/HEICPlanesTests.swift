// HEICPlanesTests: HEICs, and grids of both codecs, that are reduced before they are converted to
// RGB, compared with libheif's conversion first.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct HEICPlanesTests {
  private static let scene = Pixels.textured(width: 332, height: 220)
  /// Sides that are odd, and no multiple of a tile's.
  private static let odd = Pixels.textured(width: 331, height: 219)

  private static func heic(_ options: String = "") throws -> [UInt8] {
    try TestImages.encode(scene, as: ".heic[Q=90,effort=0\(options)]")
  }

  @Test(arguments: [331, 300, 200, 166, 90, 83, 37, 5, 1])
  func `a HEIC looks like one that is converted first`(width: Int) throws {
    for options in [",subsample_mode=on", ",subsample_mode=off"] {
      let heic = try Self.heic(options)
      #expect(try PlanarSource.isPlanar(heic))
      let (made, reference) = try PlanarSource.both(heic) { $0.width = width }
      // As for an AVIF. From a factor of 4 on, the edges of blocks are not filtered.
      let least = width <= 90 ? 35.0 : width > 200 && options.hasSuffix("on") ? 33 : 42
      #expect(made.psnr(to: reference) > least, "\(options)")
    }
  }

  @Test(arguments: 1...8, [false, true])
  func `a turned image looks the same`(tag: Int, isAVIF: Bool) throws {
    let heif = try TestImages.heif(Self.scene, isAVIF: isAVIF, orientation: tag)
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
      for width in [300, 165, 60] {
        let (made, reference) = try PlanarSource.both(file) { $0.width = width }
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
    var limits = ImagingLimits()
    limits.maximumThreads = threads
    let file = try HEIFGrid().file(of: Self.odd)
    let png = try TestImages.encode(try Pixels(decoding: file), as: ".png[compression=1]")
    let images = try [file, png].map { source in
      try Made(source, limits: limits) {
        $0.format = .png
        $0.crop = area
        $0.width = area.size.width / 2
      }.pixels()
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
      let error = Made.error(file) {
        $0.crop = area
        $0.width = area.size.width / 2
      }
      #expect(error != nil)
    }
  }

  @Test(arguments: [1, 5, 6, 9] as [UInt8], [true, false])
  func `the container's colour model counts`(coefficients: UInt8, isFullRange: Bool) throws {
    let file = try HEIFGrid {
      $0.tileProperties = [HEIFBoxes.nclx(coefficients: coefficients, isFullRange: isFullRange)]
    }.file(of: Self.odd)
    #expect(try PlanarSource.isPlanar(file))
    let (made, reference) = try PlanarSource.both(file) { $0.width = 150 }
    // libheif's factors for the limited range are up to 0.4 % higher than those of H.273.
    #expect(made.psnr(to: reference) > (isFullRange ? 40 : 35))
  }

  @Test func `the filters of HEVC are left out from a factor of 4 on`() throws {
    let heic = try TestImages.encode(Self.scene, as: ".heic[Q=10,effort=0]")
    let size = Self.scene.size
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
    let made = try Made(heic) {
      $0.width = 83
      $0.format = .png
    }.pixels()
    let (isRaw, isSmoothed) = (made.values == raw, made.values == smoothed)
    #expect(isRaw && !isSmoothed)
  }

  @Test func `a deep HEIC looks like the scene`() throws {
    let heic = try TestImages.heif(Self.scene, isAVIF: false, bits: 10)
    #expect(try PlanarSource.isPlanar(heic, of: Self.scene.size))
    let png = try TestImages.encode(Self.scene, as: ".png")
    let (made, reference) = try PlanarSource.results(of: heic, png)
    #expect(made.psnr(to: reference) > 34)
  }

  @Test func `what is no plain image of three planes is left to libvips`() throws {
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
    let identity = try HEIFGrid { $0.tileProperties = [HEIFBoxes.nclx(coefficients: 0)] }
    #expect(try !PlanarSource.isPlanar(try identity.file(of: Self.odd), of: Self.odd.size))
    let grey = try TestImages.encode(
      Pixels.textured(width: 332, height: 220, bands: 1), as: ".heic[Q=90,effort=0]")
    let made = try Made(grey) { $0.width = 100 }
    #expect(made.size == PixelSize(width: 100, height: 66))
  }

  @Test func `a damaged HEIC is left to libvips`() throws {
    let heic = try Self.heic()
    let start = try #require(heic.indices.first { heic[$0...].starts(with: "mdat".utf8) })
    // Given: zeros in place of the coded image, and another image than the header tells
    var empty = heic
    for index in start + 4..<heic.count { empty[index] = 0 }
    // When, then
    #expect(try !PlanarSource.isPlanar(empty, of: Self.scene.size))
    #expect(Made.error(empty) { $0.width = 100 } != nil)
    for size in [PixelSize(width: 334, height: 220), PixelSize(width: 100, height: 66)] {
      #expect(try !PlanarSource.isPlanar(heic, of: size))
    }
    // A coded image that ends early
    let short = Array(heic.prefix(heic.count - 2_000)) + [UInt8](repeating: 0, count: 2_000)
    #expect(try !PlanarSource.isPlanar(short, of: Self.scene.size))
  }
}
