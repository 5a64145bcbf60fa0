// ToneTests: tint, grayscale, brightness and saturation.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ToneTests {
  private static let texture = Pixels.textured(width: 90, height: 60)
  private static let clear = Pixels.textured(width: 90, height: 60, bands: 4)
  private static let grey = Pixels.textured(width: 90, height: 60, bands: 1)

  private func changed(_ pixels: Pixels, brightness: Double = 1, saturation: Double = 1) -> Pixels {
    pixels.mapped { color in
      let lab = Lab.of(Array(color.prefix(3)))
      return Lab.rgb([lab[0] * brightness, lab[1] * saturation, lab[2] * saturation])
        + color.dropFirst(3)
    }
  }

  @Test(arguments: ["ff000080", "00ff00ff", "12345600"])
  func `a tint is blended by its alpha, and the image's alpha is kept`(
    hexadecimal: String
  ) throws {
    // given
    let tint = try #require(Color(hexadecimal: hexadecimal))
    let strength = Double(tint.alpha) / 255
    let color = [tint.red, tint.green, tint.blue].map { Double($0) / 255 }
    for image in [Self.texture, Self.clear] {
      // when
      let tinted = try Made.pixels(of: image) { $0.tint = tint }
      // then
      let expected = image.mapped { pixel in
        zip(pixel, color).map { $0 + ($1 - $0) * strength } + pixel.dropFirst(3)
      }
      #expect(tinted.psnr(to: expected) > 55)
      #expect(tinted.bands == image.bands && tinted.alpha.psnr(to: expected.alpha) > 55)
    }
  }

  @Test func `a colour tint turns a grey image into colour, and a grey tint keeps it grey`() throws
  {
    let red = try Made.pixels(of: Self.grey) {
      $0.tint = Color(red: 255, green: 0, blue: 0, alpha: 102)
    }
    let grey = try Made.pixels(of: Self.grey) {
      $0.tint = Color(red: 9, green: 9, blue: 9, alpha: 102)
    }
    #expect(red.bands == 3 && grey.bands == 1)
    #expect(
      red.psnr(
        to: Pixels(width: 90, height: 60) { x, y in
          let value = Double(Self.grey[x, y][0])
          return [UInt8((value * 0.6 + 102).rounded())]
            + [UInt8](repeating: UInt8((value * 0.6).rounded()), count: 2)
        }) > 50)
  }

  @Test func `grayscale keeps only the lightness`() throws {
    for image in [Self.texture, Self.clear] {
      let grey = try Made.pixels(of: image) { $0.isGrayscale = true }
      let expected = image.mapped { pixel in
        [Lab.rgb([Lab.of(Array(pixel.prefix(3)))[0], 0, 0])[0]] + pixel.dropFirst()
      }
      #expect(grey.bands == image.bands - 2)
      #expect(
        Pixels(width: 90, height: 60, bands: 1) { [grey[$0, $1][0]] }
          .psnr(to: Pixels(width: 90, height: 60, bands: 1) { [expected[$0, $1][0]] }) > 50)
      if image.bands == 4 { #expect(grey.alpha.values == image.alpha.values) }
    }
    #expect(try Made.pixels(of: Self.grey) { $0.isGrayscale = true }.values == Self.grey.values)
  }

  @Test(arguments: [0, 0.5, 0.9, 1, 1.3, 3])
  func `brightness multiplies the lightness`(factor: Double) throws {
    let bright = try Made.pixels(of: Self.texture) { $0.brightness = factor }
    #expect(bright.psnr(to: changed(Self.texture, brightness: factor)) > 48)
    let clear = try Made.pixels(of: Self.clear) { $0.brightness = factor }
    #expect(clear.alpha.values == Self.clear.alpha.values)
    let grey = try Made.pixels(of: Self.grey) { $0.brightness = factor }
    let expected = Self.grey.mapped {
      [Lab.rgb([Lab.of([$0[0], $0[0], $0[0]])[0] * factor, 0, 0])[0]]
    }
    #expect(grey.bands == 1 && grey.psnr(to: expected) > 48)
  }

  @Test(arguments: [0, 0.5, 1, 1.5, 10])
  func `saturation multiplies the chroma and keeps greys`(factor: Double) throws {
    let result = try Made.pixels(of: Self.texture) { $0.saturation = factor }
    #expect(result.psnr(to: changed(Self.texture, saturation: factor)) > 48)
    #expect(try Made.pixels(of: Self.grey) { $0.saturation = factor }.values == Self.grey.values)
    let ramp = Pixels(width: 256, height: 1) { x, _ in [UInt8(x), UInt8(x), UInt8(x)] }
    #expect(try Made.pixels(of: ramp) { $0.saturation = factor }.values == ramp.values)
  }

  @Test func `tone effects apply in the order tint, grayscale, brightness, saturation`() throws {
    let result = try Made.pixels(of: Self.texture) {
      $0.tint = Color(red: 255, green: 0, blue: 0, alpha: 128)
      $0.brightness = 1.2
      $0.saturation = 0.5
    }
    let tinted = Self.texture.mapped { pixel in
      zip(pixel, [1.0, 0, 0]).map { $0 + ($1 - $0) * 128 / 255 }
    }
    #expect(result.psnr(to: changed(tinted, brightness: 1.2, saturation: 0.5)) > 46)
  }
}
