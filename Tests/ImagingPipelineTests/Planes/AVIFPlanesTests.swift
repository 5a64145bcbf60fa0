// AVIFPlanesTests: AVIFs reduced before their conversion to RGB, beside libheif's order.

import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct AVIFPlanesTests {
  /// Sides that are odd, and whose colour planes are as well.
  private static let scene = Pixels.textured(width: 331, height: 219)

  private static func avif(_ options: String = "") throws -> [UInt8] {
    try TestImages.encode(scene, as: ".avif[Q=90,effort=0\(options)]")
  }

  @Test(arguments: [330, 300, 200, 165, 90, 37, 5, 1])
  func `an AVIF looks like one that is converted first`(width: Int) throws {
    for options in [",subsample_mode=on", ",subsample_mode=off"] {
      let avif = try Self.avif(options)
      #expect(try PlanarSource.isPlanar(avif))
      let (made, reference) = try PlanarSource.both(avif) { $0.width = width }
      // libheif repeats each colour sample, so sharp edges of colours differ a little in a large
      // result. From a factor of 4 on, boxes are averaged first, sooner than in `Resampler`.
      let least = width <= 90 ? 36.0 : width > 200 && options.hasSuffix("on") ? 33 : 42
      #expect(made.psnr(to: reference) > least)
    }
  }

  @Test func `regions, turns and other shapes look the same`() throws {
    let avif = try Self.avif()
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
        $0.width = 60
        $0.height = 210
        $0.fit = .fill
      },
      {
        $0.width = 100
        $0.height = 100
        $0.fit = .cover
      },
      {
        $0.trim = 5
        $0.width = 100
      },
    ]
    for (index, change) in changes.enumerated() {
      let (made, reference) = try PlanarSource.both(avif, change: change)
      #expect(made.psnr(to: reference) > 38, "\(index)")
    }
  }

  /// The scene with each value of the box that describes its colours (ISO/IEC 14496-12, 12.1.5).
  private static func avif(coefficients: UInt8, isFullRange: Bool) throws -> [UInt8] {
    var avif = try avif()
    let name = Array("colrnclx".utf8)
    let place = try #require(
      avif.indices.first { avif[$0...].starts(with: name) }, "libvips writes the box")
    avif[place + 13] = coefficients
    avif[place + 14] = isFullRange ? 0x80 : 0
    return avif
  }

  @Test(arguments: [1, 5, 6, 9] as [UInt8], [true, false])
  func `the container's colour model counts`(coefficients: UInt8, isFullRange: Bool) throws {
    let avif = try Self.avif(coefficients: coefficients, isFullRange: isFullRange)
    #expect(try PlanarSource.isPlanar(avif))
    let (made, reference) = try PlanarSource.both(avif) { $0.width = 150 }
    // libheif's factors for the limited range are up to 0.4 % higher than those of H.273.
    #expect(made.psnr(to: reference) > (isFullRange ? 42 : 36))
  }

  @Test func `without the container's colour model the coded image's counts`() throws {
    // Given: the box is of another type, which nothing reads
    var avif = try Self.avif()
    let place = try #require(avif.indices.first { avif[$0...].starts(with: "colrnclx".utf8) })
    avif.replaceSubrange(place..<place + 4, with: "pasp".utf8)
    // When, then
    #expect(try PlanarSource.isPlanar(avif))
    let (made, reference) = try PlanarSource.both(avif) { $0.width = 150 }
    #expect(made.psnr(to: reference) > 42)
  }

  @Test(arguments: [8, 10, 12])
  func `a deep AVIF looks like the scene`(bits: Int) throws {
    let avif = try TestImages.heif(Self.scene, isAVIF: true, bits: bits)
    #expect(try PlanarSource.isPlanar(avif, of: Self.scene.size))
    let png = try TestImages.encode(Self.scene, as: ".png")
    let (made, reference) = try PlanarSource.results(of: avif, png)
    #expect(made.psnr(to: reference) > 34)
  }

  @Test func `a profile is applied after the reduction`() throws {
    let profile = LittleCMS.profile(LittleCMS.adobeRGB, gamma: 2.2)
    func encoded(_ suffix: String) throws -> [UInt8] {
      try TestImages.encode(
        Self.scene.values, width: 331, bands: 3, as: .sRGB, profile: profile, suffix: suffix)
    }
    let avif = try encoded(".avif[Q=90,effort=0]")
    #expect(try PlanarSource.isPlanar(avif))
    let png = try encoded(".png")
    let (made, reference) = try PlanarSource.results(of: avif, png)
    #expect(made.psnr(to: reference) > 34)
  }

  @Test func `what is no plain image of three planes is left to libvips`() throws {
    let alpha = Pixels.textured(width: 331, height: 219, bands: 4)
    let identity = try Self.avif(coefficients: 0, isFullRange: true)
    #expect(try !PlanarSource.isPlanar(identity))
    // Alpha is another image of the file, which the header tells.
    let avif = try TestImages.encode(alpha, as: ".avif[Q=90,effort=0]")
    let made = try Made(avif) {
      $0.format = .png
      $0.width = 120
    }
    #expect(try made.pixels().bands == 4)
  }

  @Test func `a damaged AVIF is no image for dav1d and for libvips`() throws {
    let avif = try Self.avif()
    let start = try #require(avif.indices.first { avif[$0...].starts(with: "mdat".utf8) })
    // Given: zeros in place of the coded image, and another image than the header tells
    var empty = avif
    for index in start + 4..<avif.count { empty[index] = 0 }
    // When, then
    #expect(try !PlanarSource.isPlanar(empty, of: Self.scene.size))
    #expect(Made.error(empty) { $0.width = 100 } != nil)
    for size in [PixelSize(width: 332, height: 219), PixelSize(width: 100, height: 66)] {
      #expect(try !PlanarSource.isPlanar(avif, of: size))
    }
  }
}
