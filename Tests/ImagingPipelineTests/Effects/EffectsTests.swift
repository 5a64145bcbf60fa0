// EffectsTests: each effect is compared with its formula in plain Swift.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct EffectsTests {
  private static let texture = Pixels.textured(width: 90, height: 60)
  private static let clear = Pixels.textured(width: 90, height: 60, bands: 4)

  // MARK: Blur

  @Test(arguments: [0.5, 1, 2.4, 2.6, 4, 9, 30, 250])
  func `a blur is a Gaussian with mirrored edges`(sigma: Double) throws {
    let blurred = try Made.pixels(of: Self.texture) { $0.blur = sigma }
    #expect(blurred.psnr(to: Self.texture.blurred(by: sigma)) > 44)
  }

  @Test(arguments: [1, 6.0])
  func `a blur weights colours by alpha and blurs alpha too`(sigma: Double) throws {
    let blurred = try Made.pixels(of: Self.clear) { $0.blur = sigma }
    let expected = Self.clear.blurred(by: sigma)
    #expect(blurred.onBlack.psnr(to: expected.onBlack) > 40)
    #expect(blurred.alpha.psnr(to: expected.alpha) > 40)
  }

  @Test(arguments: [1, 6.0])
  func `transparent pixels do not affect blurred colours`(sigma: Double) throws {
    let image = Pixels(width: 60, height: 30, bands: 4) { x, _ in
      x < 30 ? [250, 250, 250, 255] : [0, 0, 0, 0]
    }
    let blurred = try Made.pixels(of: image) { $0.blur = sigma }
    for x in 0..<60 where blurred[x, 15][3] > 16 {
      #expect(blurred.rgb(x: x, y: 15).allSatisfy { $0 > 240 })
    }
  }

  @Test(arguments: [(1, 1), (1, 90), (7, 3)])
  func `an image smaller than its blur becomes one colour`(width: Int, height: Int) throws {
    let image = Pixels.textured(width: width, height: height)
    let blurred = try Made.pixels(of: image) { $0.blur = 100 }
    #expect(blurred.meanDifference(to: image.blurred(by: 100)) < 1.5)
  }

  // MARK: Sharpen

  /// Applies libvips's rule for screens: differences above 2 L* are tripled, by at most 10 up and
  /// 20 down.
  private func sharpened(_ pixels: Pixels, sigma: Double) -> Pixels {
    let blurred = pixels.blurred(by: sigma)
    return Pixels(width: pixels.size.width, height: pixels.size.height) { x, y in
      var lab = Lab.of(pixels.rgb(x: x, y: y).map { Double($0) / 255 })
      let difference = lab[0] - Lab.of(blurred.rgb(x: x, y: y).map { Double($0) / 255 })[0]
      let more = max(0, abs(difference) - 2) * 3
      lab[0] += difference < 0 ? -min(more, 20) : min(more, 10)
      return Lab.rgb(lab).map { UInt8((min(max($0, 0), 1) * 255).rounded()) }
    }
  }

  @Test(arguments: [0.8, 1.5, 3])
  func `sharpening is an unsharp mask on lightness`(sigma: Double) throws {
    let sharp = try Made.pixels(of: Self.texture) { $0.sharpen = sigma }
    let expected = sharpened(Self.texture, sigma: sigma)
    #expect(sharp.psnr(to: expected) > 30)
    #expect(sharp.psnr(to: expected) > Self.texture.psnr(to: expected) + 3)
  }

  @Test func `an edge in alpha alone is not sharpened, and alpha is unchanged`() throws {
    let image = Pixels(width: 40, height: 20, bands: 4) { x, _ in
      x < 20 ? [120, 130, 140, 255] : [0, 0, 0, 0]
    }
    let sharp = try Made.pixels(of: image) { $0.sharpen = 2 }
    #expect(sharp.alpha.values == image.alpha.values)
    for x in 0..<20 { #expect(isClose(sharp.rgb(x: x, y: 10), to: [120, 130, 140], within: 2)) }
  }

  // MARK: Corners

  /// Returns the coverage of each pixel by rounded corners, from 16 by 16 samples.
  private func coverage(width: Int, height: Int, radius: Double) -> Pixels {
    Pixels(width: width, height: height, bands: 1) { x, y in
      var inside = 0
      for place in 0..<256 {
        let u = Double(x) + (Double(place % 16) + 0.5) / 16
        let v = Double(y) + (Double(place / 16) + 0.5) / 16
        let w = Double(width)
        let h = Double(height)
        let a = max(radius - min(u, w - u), 0)
        let b = max(radius - min(v, h - v), 0)
        if a * a + b * b <= radius * radius { inside += 1 }
      }
      return [UInt8((Double(inside) * 255 / 256).rounded())]
    }
  }

  @Test(arguments: [(1, 1), (7, 7), (20, 20), (100, 30)])
  func `corner pixels are weighted by their coverage`(points: Int, radius: Double) throws {
    // given, when
    let made = try Made(try TestImages.encode(Self.texture, as: ".png")) {
      $0.effects.radius = .points(points)
    }
    let pixels = try made.pixels()
    // then
    #expect(made.format == .png && pixels.bands == 4)
    #expect(pixels.alpha.psnr(to: coverage(width: 90, height: 60, radius: radius)) > 45)
    #expect(pixels.rgb(x: 45, y: 30) == Self.texture.rgb(x: 45, y: 30))
  }

  @Test(arguments: [(61, 61), (60, 30), (2, 2), (3, 9)])
  func `the maximum radius is half of the shorter side`(width: Int, height: Int) throws {
    let image = Pixels(width: width, height: height, color: [90, 90, 90])
    let rounded = try Made.pixels(of: image) { $0.radius = .maximum }
    #expect(
      rounded.alpha.psnr(
        to: coverage(width: width, height: height, radius: Double(min(width, height)) / 2)) > 42)
  }

  @Test func `the radius is in points of the result`() throws {
    let source = try TestImages.encode(Self.texture, as: ".png")
    let made = try Made(source, density: 2) { $0.effects.radius = .points(10) }
    #expect(try made.pixels().alpha.psnr(to: coverage(width: 90, height: 60, radius: 20)) > 45)
  }

  @Test func `rounded corners show the background in a JPEG and do not affect padding`() throws {
    // given
    let source = try TestImages.encode(
      Pixels(width: 60, height: 60, color: [0, 0, 250]), as: ".png")
    let red = Color(red: 255, green: 0, blue: 0)
    // when
    let jpeg = try Made(source) {
      $0.effects.radius = .maximum
      $0.format = .jpeg
      $0.background = red
    }
    let padded = try Made(source, width: 120, height: 60, fit: .contain, format: .jpeg) {
      $0.effects.radius = .maximum
      $0.background = red
    }
    // then
    #expect(isClose(try jpeg.pixels().rgb(x: 2, y: 2), to: [255, 0, 0]))
    #expect(isClose(try jpeg.pixels().rgb(x: 30, y: 30), to: [0, 0, 250]))
    let pixels = try padded.pixels()
    #expect(pixels.size == PixelSize(width: 120, height: 60))
    for x in [1, 32, 118] { #expect(isClose(pixels.rgb(x: x, y: 2), to: [255, 0, 0])) }
    #expect(isClose(pixels.rgb(x: 60, y: 30), to: [0, 0, 250]))
  }

  @Test func `transparent pixels stay transparent inside rounded corners`() throws {
    let rounded = try Made.pixels(of: Self.clear) { $0.radius = .points(15) }
    let expected = zip(coverage(width: 90, height: 60, radius: 15).values, Self.clear.alpha.values)
      .map { Int((Double($0) * Double($1) / 255).rounded()) }
    #expect(zip(rounded.alpha.values, expected).allSatisfy { abs(Int($0) - $1) <= 4 })
  }

  /// Returns how much of each pixel is inside of corners with these half axes, clockwise from the
  /// top left: of 16 lines, 256 points on each.
  private func coverage(of corners: [(Double, Double)], width: Int, height: Int) -> [Int] {
    let centres = [(0, 0), (width, 0), (width, height), (0, height)]
    return (0..<width * height).map { pixel in
      var inside = 0
      for place in 0..<4_096 {
        let u = Double(pixel % width) + (Double(place % 256) + 0.5) / 256
        let v = Double(pixel / width) + (Double(place / 256) + 0.5) / 16
        let isOutside = zip(corners, centres).contains { axes, corner in
          let a = 1 - abs(u - Double(corner.0)) / axes.0
          let b = 1 - abs(v - Double(corner.1)) / axes.1
          return axes.0 > 0 && a > 0 && b > 0 && a * a + b * b > 1
        }
        if !isOutside { inside += 1 }
      }
      return Int((Double(inside) * 255 / 4_096).rounded())
    }
  }

  @Test(
    arguments: [
      (.corners([2, 0, 7, 5]), [(4, 4), (0, 0), (14, 14), (10, 10)]),
      // Of 40 pixels in height on the right, 20 are there.
      (.corners([0, 15, 5, 0]), [(0, 0), (15, 15), (5, 5), (0, 0)]),
      (.ellipse, [(15, 10), (15, 10), (15, 10), (15, 10)]),
      (.maximum, [(10, 10), (10, 10), (10, 10), (10, 10)]),
    ] as [(CornerRadius, [(Double, Double)])])
  func `each corner has its radius, and an ellipse the image's`(
    radius: CornerRadius, corners: [(Double, Double)]
  ) throws {
    let image = Pixels(width: 30, height: 20, color: [200, 90, 10])
    let made = try Made(try TestImages.encode(image, as: ".png"), density: 2, format: .png) {
      $0.effects.radius = radius
    }.pixels()
    let expected = coverage(of: corners, width: 30, height: 20)
    #expect(zip(made.alpha.values, expected).allSatisfy { abs(Int($0) - $1) <= 1 })
    #expect(made.rgb(x: 15, y: 10) == [200, 90, 10])
  }

  // MARK: Animations and combinations

  @Test(arguments: [ImageFormat.gif, .webp])
  func `effects apply to each frame of an animation and keep its delays`(format: ImageFormat) throws
  {
    // given
    let frames = (0..<3).map { frame in
      Pixels(width: 40, height: 30) { x, _ in
        x < 20 ? TestImages.frameColor(frame) : [200, 200, 200]
      }
    }
    let source = try TestImages.animation(
      frames, delays: [50, 70, 90], loop: 4, as: ".webp[lossless]")
    // when
    let made = try Made(source, format: format, quality: 100) {
      $0.effects.blur = 2
      $0.effects.isGrayscale = true
      $0.effects.radius = .maximum
    }
    // then
    #expect(made.frames == 3)
    for frame in 0..<3 {
      let pixels = try made.pixels(frame: frame)
      let grey = frames[frame].blurred(by: 2).mapped { color in
        [Double](repeating: Lab.rgb([Lab.of(color)[0], 0, 0])[0], count: 3)
      }
      #expect(pixels.bands == 4 && pixels[0, 0][3] == 0 && pixels[20, 15][3] == 255)
      let part = pixels.cut(x: 10, y: 5, width: 20, height: 20)
      let expected = grey.cut(x: 10, y: 5, width: 20, height: 20)
      #expect(part.meanDifference(to: expected) < 5)
    }
    #expect(try TestImages.delays(of: made.bytes) == [50, 70, 90])
    #expect(try TestImages.loop(of: made.bytes) == 4)
  }

  @Test func `effects apply after the resize and before the padding`() throws {
    // given
    let source = try TestImages.encode(Pixels.textured(width: 180, height: 120), as: ".png")
    let small = try Made(source, width: 90, format: .png).pixels()
    // when
    let made = try Made(source, width: 90, height: 90, fit: .contain, format: .png) {
      $0.effects.blur = 3
      $0.background = Color(red: 0, green: 0, blue: 0)
    }.pixels()
    // then: no black within the image, and no image within the padding
    #expect(made.cut(x: 0, y: 15, width: 90, height: 60).psnr(to: small.blurred(by: 3)) > 40)
    #expect(made.cut(x: 0, y: 0, width: 90, height: 15).values.allSatisfy { $0 == 0 })
  }

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

  /// Whether no value differs by more than 1 of 255.
  private func isEqual(_ made: Pixels, to expected: Pixels) -> Bool {
    made.bands == expected.bands && made.size == expected.size
      && zip(made.values, expected.values).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
  }

  @Test(arguments: [1, 90, 200, 359])
  func `a hue turns in Lab, and greys stay`(degrees: Int) throws {
    let turned = try Made.pixels(of: Self.texture) { $0.hue = degrees }
    let angle = Double(degrees) * .pi / 180
    let expected = Self.texture.mapped { color in
      let lab = Lab.of(color)
      return Lab.rgb([
        lab[0], lab[1] * cos(angle) - lab[2] * sin(angle),
        lab[1] * sin(angle) + lab[2] * cos(angle),
      ])
    }
    #expect(turned.psnr(to: expected) > 46)
    #expect(try Made.pixels(of: Self.grey) { $0.hue = degrees }.values == Self.grey.values)
  }

  @Test(arguments: [
    (0, 1, false), (2.5, 1, false), (1, 2.2, false), (1, 0.5, true), (1.5, 2, true),
  ])
  func `contrast, gamma and the negative change single values`(
    contrast: Double, gamma: Double, isNegative: Bool
  ) throws {
    for image in [Self.texture, Self.clear, Self.grey] {
      let made = try Made.pixels(of: image) {
        ($0.contrast, $0.gamma, $0.isNegative) = (contrast, gamma, isNegative)
      }
      let colors = image.bands == 4 ? 3 : image.bands
      let expected = image.mapped { pixel in
        pixel.prefix(colors).map {
          let value = pow(min(max(($0 - 0.5) * contrast + 0.5, 0), 1), 1 / gamma)
          return isNegative ? 1 - value : value
        } + pixel.dropFirst(colors)
      }
      #expect(isEqual(made, to: expected))
    }
  }

  @Test(arguments: [0.4, 1])
  func `sepia is that of CSS, also of grey images`(amount: Double) throws {
    func brown(_ color: [Double]) -> [Double] {
      let rows = [[0.393, 0.769, 0.189], [0.349, 0.686, 0.168], [0.272, 0.534, 0.131]]
      return zip(color, rows).map { value, row in
        let sum = zip(color, row).map(*).reduce(0, +)
        return min(value + (sum - value) * amount, 1)
      }
    }
    for image in [Self.texture, Self.clear] {
      let made = try Made.pixels(of: image) { $0.sepia = amount }
      let expected = image.mapped { brown(Array($0.prefix(3))) + $0.dropFirst(3) }
      #expect(isEqual(made, to: expected))
    }
    let colors = Pixels(width: 90, height: 60) { x, y in
      [UInt8](repeating: Self.grey[x, y][0], count: 3)
    }
    let expected = colors.mapped { brown($0) }
    #expect(isEqual(try Made.pixels(of: Self.grey) { $0.sepia = amount }, to: expected))
    let grey = try Made.pixels(of: Self.texture) { ($0.sepia, $0.isGrayscale) = (amount, true) }
    #expect(grey.bands == 3)
  }

  @Test(arguments: [2, 7, 60, 65_535])
  func `squares have the mean of their pixels by alpha`(side: Int) throws {
    for image in [Self.texture, Self.clear, Self.grey] {
      let made = try Made.pixels(of: image) { $0.pixelate = side }
      let colors = image.bands == 4 ? 3 : image.bands
      let expected = Pixels(width: 90, height: 60, bands: image.bands) { x, y in
        let across = x / side * side..<min(x / side * side + side, 90)
        let down = y / side * side..<min(y / side * side + side, 60)
        let pixels = down.flatMap { y in across.map { image[$0, y].map(Double.init) } }
        let weights = pixels.map { colors == 3 && image.bands == 4 ? $0[3] : 1 }
        let weight = weights.reduce(0, +)
        let means = (0..<colors).map { band in
          weight == 0 ? 0 : zip(pixels, weights).map { $0[band] * $1 }.reduce(0, +) / weight
        }
        let alpha = image.bands == 4 ? [weight / Double(pixels.count)] : []
        return (means + alpha).map { UInt8($0.rounded()) }
      }
      #expect(isEqual(made, to: expected))
    }
  }
}
