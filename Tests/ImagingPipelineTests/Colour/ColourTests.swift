// ColourTests: colour models and profiles are converted to sRGB or grey.

import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ColourTests {
  /// Converts Display P3 to sRGB by the matrices of CSS Color 4, section 17, independently of
  /// libvips and lcms.
  private func sRGB(ofP3 color: [UInt8]) -> [UInt8] {
    func decode(_ value: UInt8) -> Double {
      let v = Double(value) / 255
      return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4)
    }
    func encode(_ v: Double) -> UInt8 {
      let v = min(max(v, 0), 1)
      return UInt8((255 * (v <= 0.0031308 ? v * 12.92 : 1.055 * pow(v, 1 / 2.4) - 0.055)).rounded())
    }
    let r = decode(color[0])
    let g = decode(color[1])
    let b = decode(color[2])
    return [
      encode(1.2249402 * r - 0.2249402 * g), encode(-0.0420569 * r + 1.0420569 * g),
      encode(-0.0196376 * r - 0.0786361 * g + 1.0982735 * b),
    ]
  }

  @Test(
    arguments: [[200, 100, 50], [100, 150, 120], [128, 128, 128], [60, 90, 160]] as [[UInt8]])
  func `an embedded profile is converted to sRGB`(color: [UInt8]) throws {
    // given
    let source = try TestImages.encode(
      Pixels(width: 64, height: 48, color: color), as: ".png[profile=p3]")
    // when
    let made = try Made(source) {
      $0.width = 32
      $0.format = .png
    }
    // then
    #expect(isClose(try made.pixels().rgb(x: 16, y: 12), to: sRGB(ofP3: color), within: 3))
    #expect(!made.bytes.contains("iCCP"))
  }

  @Test func `an sRGB profile does not change colours`() throws {
    let source = try TestImages.encode(
      Pixels(width: 64, height: 48, color: [200, 100, 50]), as: ".png[profile=srgb]")
    let made = try Made(source) { $0.format = .png }
    #expect(isClose(try made.pixels().rgb(x: 16, y: 12), to: [200, 100, 50], within: 1))
  }

  @Test func `a profile is applied to images with alpha`() throws {
    let source = try TestImages.encode(
      Pixels(width: 64, height: 48, color: [200, 100, 50, 128]), as: ".png[profile=p3]")
    let made = try Made(source) { $0.width = 32 }
    let pixel = try made.pixels()[16, 12]
    #expect(isClose(Array(pixel[0..<3]), to: sRGB(ofP3: [200, 100, 50]), within: 4))
    #expect(pixel[3] == 128)
  }

  @Test func `a profile for another colour model is ignored`() throws {
    // given: a grey image with a CMYK profile
    let source = try TestImages.encode(
      Pixels(width: 64, height: 48, color: [90]), as: ".tif[profile=cmyk]")
    // when
    let made = try Made(source) { $0.format = .png }
    // then
    #expect(isClose(try made.pixels().rgb(x: 10, y: 10), to: [90, 90, 90], within: 2))
  }

  @Test(arguments: [false, true])
  func `CMYK is converted to sRGB, with and without a profile`(profile: Bool) throws {
    // given: one ink at a time. Printed cyan differs from screen cyan, so only the hue is checked.
    func made(_ color: [UInt8]) throws -> [UInt8] {
      let source = try TestImages.cmykJPEG(width: 64, height: 48, color: color, profile: profile)
      let made = try Made(source) {
        $0.width = 32
        $0.format = .png
      }
      #expect(try made.pixels().bands == 3)
      return try made.pixels().rgb(x: 16, y: 12)
    }
    // when
    let white = try made([0, 0, 0, 0])
    let cyan = try made([255, 0, 0, 0])
    let magenta = try made([0, 255, 0, 0])
    let (yellow, black) = (try made([0, 0, 255, 0]), try made([0, 0, 0, 255]))
    // then
    #expect(isClose(white, to: [255, 255, 255], within: 4))
    #expect(cyan[0] < 80 && cyan[1] > 120 && cyan[2] > 180)
    #expect(magenta[0] > 180 && magenta[1] < 80 && magenta[2] > 80)
    #expect(yellow[0] > 220 && yellow[1] > 200 && yellow[2] < 100)
    #expect(black.allSatisfy { $0 < 60 })
  }

  @Test func `grey stays one band if the format supports it`() throws {
    // given
    let grey = Pixels(width: 64, height: 48, bands: 1) { x, _ in [UInt8(x * 4)] }
    let source = try TestImages.encode(grey, as: ".png")
    // when, then
    for format in [nil, ImageFormat.jpeg, .png] {
      let made = try Made(source) {
        $0.width = 32
        $0.format = format
      }
      #expect(try made.pixels().bands == 1)
      #expect(isClose(try made.pixels().rgb(x: 16, y: 12), to: [130, 130, 130], within: 4))
    }
    let webp = try Made(source) { $0.format = .webp }
    #expect(isClose(try webp.pixels().rgb(x: 16, y: 12), to: [64, 64, 64], within: 4))
  }

  @Test func `grey on a coloured background becomes colour`() throws {
    let source = try TestImages.encode(Pixels(width: 20, height: 40, color: [90, 0]), as: ".png")
    let made = try Made(source) {
      $0.format = .jpeg
      $0.background = Color(red: 255, green: 0, blue: 0)
    }
    #expect(isClose(try made.pixels().rgb(x: 10, y: 10), to: [254, 0, 0]))
  }

  @Test func `16 bits are converted to 8`() throws {
    // given
    let colour = try TestImages.png(width: 96, height: 64, sixteenBits: true)
    let alpha = try TestImages.png(width: 96, height: 64, alpha: true, sixteenBits: true)
    let grey = try TestImages.encode(
      Pixels(width: 90, height: 60, color: [77]), as: ".png", sixteenBits: true)
    // when, then
    let small = Pixels.scene(width: 48, height: 32, alpha: true)
    let plain = try Made(colour) {
      $0.width = 48
      $0.format = .png
    }.pixels()
    #expect(plain.psnr(to: small) > 30)
    let withAlpha = try Made(alpha) { $0.width = 48 }.pixels()
    #expect(withAlpha.bands == 4 && isClose(withAlpha[40, 25], to: small[40, 25]))
    #expect(
      isClose(
        try Made(grey) { $0.width = 45 }.pixels().rgb(x: 20, y: 20), to: [77, 77, 77], within: 2))
  }

  @Test func `indexed colours are expanded`() throws {
    let source = try TestImages.png(width: 90, height: 60, palette: true)
    let made = try Made(source) { $0.format = .png }
    #expect(try made.pixels().psnr(to: .scene(width: 90, height: 60)) > 30)
  }
}
