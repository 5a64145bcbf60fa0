// Hashes: encodes an image as about twenty characters or bytes: BlurHash and ThumbHash.

import Core
import Glibc

/// The first terms of a cosine transform of an image in linear light: its mean colour, then one
/// amplitude per colour for each further term. Amplitudes have 19 steps, relative to the largest.
///
/// The text is in base 83, most significant digit first:
/// - One digit for the numbers of terms, `(across − 1) + (down − 1) · 9`.
/// - One digit for the largest amplitude, in 166ths.
/// - Four digits for the mean, `rrggbb` in sRGB.
/// - Two digits for each further term.
struct BlurHash {
  let text: String

  /// Decodes the hash to an opaque image.
  func image(_ size: PixelSize) -> SmallImage {
    let digits = text.utf8.map { Self.alphabet.firstIndex(of: $0) ?? 0 }
    func number(_ place: Int, count: Int) -> Int {
      digits[place..<place + count].reduce(0) { $0 * 83 + $1 }
    }
    let (across, down) = (digits[0] % 9 + 1, digits[0] / 9 + 1)
    let unit = Double(digits[1] + 1) / 166
    let mean = number(2, count: 4)
    let terms =
      [SIMD3(mean >> 16, mean >> 8 & 255, mean & 255).map(SRGB.linear)]
      + stride(from: 6, to: digits.count, by: 2).map { place in
        let steps = number(place, count: 2)
        return SIMD3(steps / 361, steps / 19 % 19, steps % 19).map { step in
          let value = Double(step - 9) / 9
          return value * abs(value) * unit
        }
      }
    let waves = (0..<across).map { Self.wave($0, length: size.width) }
    let heights = (0..<down).map { Self.wave($0, length: size.height) }
    return SmallImage(size) { x, y in
      var light = SIMD3<Double>()
      for row in 0..<down {
        for column in 0..<across {
          light += terms[row * across + column] * (waves[column][x] * heights[row][y])
        }
      }
      return [light.x, light.y, light.z].map { UInt8(SRGB.byte($0)) } + [255]
    }
  }

  /// Returns one cosine, sampled at the left edges of pixels as in the reference implementations.
  private static func wave(_ number: Int, length: Int) -> [Double] {
    (0..<length).map { cos(.pi * Double(number * $0) / Double(length)) }
  }

  private static let alphabet = Array(
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz#$%*+,-.:;=?@[]^_{|}~".utf8)

  private static func digits(_ value: Int, count: Int) -> [UInt8] {
    var rest = value
    var digits = [UInt8](repeating: 0, count: count)
    for place in digits.indices.reversed() {
      digits[place] = alphabet[rest % 83]
      rest /= 83
    }
    return digits
  }
}

extension BlurHash {
  /// Computes the hash of an image. Ignores alpha, so flatten the image first.
  ///
  /// - Parameters:
  ///   - image: A small image: the time grows with its pixels and the number of terms.
  ///   - across: The number of terms from left to right, 1–9.
  ///   - down: The number of terms from top to bottom, 1–9.
  init(of image: SmallImage, across: Int = 4, down: Int = 3) {
    let width = image.size.width
    let height = image.size.height
    let light = SRGB.linear(image)
    let waves = (0..<across).map { Self.wave($0, length: width) }
    let heights = (0..<down).map { Self.wave($0, length: height) }
    var terms: [SIMD3<Double>] = []
    for (row, rowWave) in heights.enumerated() {
      for (column, wave) in waves.enumerated() {
        var sum = SIMD3<Double>()
        for y in 0..<height {
          var line = SIMD3<Double>()
          for x in 0..<width { line += light[y * width + x] * wave[x] }
          sum += line * rowWave[y]
        }
        terms.append(sum * ((row + column == 0 ? 1 : 2) / Double(width * height)))
      }
    }
    let largest = terms.dropFirst().map { max(abs($0.x), abs($0.y), abs($0.z)) }.max()
    // The largest amplitude, 0–82.
    let swing = largest.map { min(82, max(0, Int(($0 * 166 - 0.5).rounded(.down)))) } ?? 0
    let unit = Double(swing + 1) / 166
    let mean = terms[0].map(SRGB.byte)
    var digits = Self.digits(across - 1 + (down - 1) * 9, count: 1)
    digits += Self.digits(swing, count: 1)
    digits += Self.digits(mean.x << 16 | mean.y << 8 | mean.z, count: 4)
    for term in terms.dropFirst() {
      // 0–18 for each colour; 9 means zero.
      let step = term.map { value in
        let root = (abs(value) / unit).squareRoot() * (value < 0 ? -1 : 1)
        return min(18, max(0, Int((root * 9 + 9.5).rounded(.down))))
      }
      digits += Self.digits(step.x * 361 + step.y * 19 + step.z, count: 2)
    }
    text = String(decoding: digits, as: UTF8.self)
  }
}

extension SIMD3 {
  fileprivate func map<Result: SIMDScalar>(_ change: (Scalar) -> Result) -> SIMD3<Result> {
    SIMD3<Result>(change(x), change(y), change(z))
  }
}

/// The transfer function of sRGB (IEC 61966-2-1).
enum SRGB {
  /// Returns the linear light, 0–1, of a value of 0–255.
  static func linear(_ byte: Int) -> Double { light(Double(byte) / 255) }

  /// Returns the linear light, 0–1, of a value of 0–1.
  static func light(_ value: Double) -> Double {
    value <= 0.040_45 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
  }

  /// Returns the value, 0–1, of linear light of 0–1.
  static func value(_ light: Double) -> Double {
    light <= 0.003_130_8 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
  }

  /// Returns the linear colours of all pixels; ignores alpha.
  static func linear(_ image: SmallImage) -> [SIMD3<Double>] {
    let table = (0...255).map { linear($0) }
    return image.pixels.map { SIMD3(table[Int($0.x)], table[Int($0.y)], table[Int($0.z)]) }
  }

  /// Returns the nearest value of 0–255 for linear light.
  static func byte(_ light: Double) -> Int {
    Int(value(min(max(light, 0), 1)) * 255 + 0.5)
  }
}

/// The first terms of a cosine transform of four channels: lightness, yellow versus blue, red
/// versus green, and alpha if present. Amplitudes have 16 steps, relative to the largest of their
/// channel.
///
/// The bytes are, with the number of bits in parentheses:
/// - Three bytes: the means of the first three channels (6 each), the largest amplitude of the
///   lightness (5), and whether alpha is present (1).
/// - Two bytes: the lightness terms along the shorter side (3), the largest amplitudes of the two
///   colour channels (6 each), and whether the image is landscape (1).
/// - With alpha, one byte: its mean and largest amplitude (4 each).
/// - All amplitudes (4 each), the lower half of a byte first.
struct ThumbHash: Equatable {
  /// The maximum side of an image to be hashed.
  static let longestSide = 100
  /// The longer side of the decoded image.
  static let shownSide = 32

  /// The bytes of the hash.
  let bytes: [UInt8]

  /// Computes the hash of an image no larger than `longestSide`.
  init(of image: SmallImage) {
    let width = image.size.width
    let height = image.size.height
    let colors = Colors(of: image)
    let terms = Terms(width: width, height: height, hasAlpha: colors.hasAlpha)
    let lightness = Channel(of: colors.lightness, size: image.size, waves: terms.lightness)
    let yellow = Channel(of: colors.yellow, size: image.size, waves: Terms.color)
    let red = Channel(of: colors.red, size: image.size, waves: Terms.color)
    var channels = [lightness, yellow, red]

    var head = Self.whole(lightness.mean, of: 63)
    head |= Self.whole((1 + yellow.mean) / 2, of: 63) << 6
    head |= Self.whole((1 + red.mean) / 2, of: 63) << 12
    head |= Self.whole(lightness.scale, of: 31) << 18
    head |= (colors.hasAlpha ? 1 : 0) << 23
    let isLandscape = width > height
    var shape = isLandscape ? terms.down : terms.across
    shape |= Self.whole(yellow.scale, of: 63) << 3
    shape |= Self.whole(red.scale, of: 63) << 9
    shape |= (isLandscape ? 1 : 0) << 15
    var bytes = [head, head >> 8, head >> 16, shape, shape >> 8].map {
      UInt8(truncatingIfNeeded: $0)
    }
    if colors.hasAlpha {
      let alpha = Channel(of: colors.alpha, size: image.size, waves: Terms.alpha)
      channels.append(alpha)
      bytes.append(UInt8(Self.whole(alpha.mean, of: 15) | Self.whole(alpha.scale, of: 15) << 4))
    }

    let steps = channels.flatMap { $0.shares.map { UInt8(Self.whole($0, of: 15)) } }
    for index in stride(from: 0, to: steps.count, by: 2) {
      bytes.append(steps[index] | (index + 1 < steps.count ? steps[index + 1] << 4 : 0))
    }
    self.bytes = bytes
  }

  /// Returns a share of 0–1 as a whole number of steps.
  private static func whole(_ share: Double, of steps: Int) -> Int {
    Int((min(max(share, 0), 1) * Double(steps)).rounded())
  }

  /// Decodes the hash to an image of 32 pixels on the longer side, with alpha.
  var image: SmallImage {
    let head = Int(bytes[0]) | Int(bytes[1]) << 8 | Int(bytes[2]) << 16
    let shape = Int(bytes[3]) | Int(bytes[4]) << 8
    let hasAlpha = head >> 23 == 1
    let terms = Terms(shorter: shape & 7, isLandscape: shape >> 15 == 1, hasAlpha: hasAlpha)
    var steps = bytes[(hasAlpha ? 6 : 5)...].flatMap { [$0 & 15, $0 >> 4] }[...]
    func channel(mean: Double, scale: Double, waves: [Wave]) -> Channel {
      defer { steps = steps.dropFirst(waves.count) }
      return Channel(
        mean: mean, scale: scale, shares: steps.prefix(waves.count).map { Double($0) / 15 })
    }
    // Colours are a quarter stronger to compensate for rounding.
    let lightness = channel(
      mean: Double(head & 63) / 63, scale: Double(head >> 18 & 31) / 31, waves: terms.lightness)
    let yellow = channel(
      mean: Double(head >> 6 & 63) / 31.5 - 1, scale: Double(shape >> 3 & 63) / 63 * 1.25,
      waves: Terms.color)
    let red = channel(
      mean: Double(head >> 12 & 63) / 31.5 - 1, scale: Double(shape >> 9 & 63) / 63 * 1.25,
      waves: Terms.color)
    let alpha =
      hasAlpha
      ? channel(
        mean: Double(bytes[5] & 15) / 15, scale: Double(bytes[5] >> 4) / 15, waves: Terms.alpha)
      : nil

    let ratio = Double(terms.across) / Double(terms.down)
    let side = Double(Self.shownSide)
    let size = PixelSize(
      width: Int((ratio > 1 ? side : side * ratio).rounded()),
      height: Int((ratio > 1 ? side / ratio : side).rounded()))
    let cosines = Cosines(size)
    return SmallImage(size) { x, y in
      let l = lightness.value(x: x, y: y, waves: terms.lightness, cosines: cosines)
      let p = yellow.value(x: x, y: y, waves: Terms.color, cosines: cosines)
      let q = red.value(x: x, y: y, waves: Terms.color, cosines: cosines)
      let blue = l - 2 / 3 * p
      let red = (3 * l - blue + q) / 2
      let opacity = alpha?.value(x: x, y: y, waves: Terms.alpha, cosines: cosines) ?? 1
      return [red, red - q, blue, opacity].map { UInt8(min(max($0, 0), 1) * 255) }
    }
  }
}

/// One term: the number of half waves from left to right and from top to bottom.
private struct Wave {
  let x: Int
  let y: Int
}

/// The terms of each channel.
private struct Terms {
  /// The number of lightness terms along each side; 1–7.
  let across: Int
  let down: Int

  /// Uses the maximum along the longer side, and a proportional number along the other.
  init(width: Int, height: Int, hasAlpha: Bool) {
    let maximum = Self.maximumWaves(hasAlpha: hasAlpha)
    let longest = Double(max(width, height))
    across = max(1, Int((maximum * Double(width) / longest).rounded()))
    down = max(1, Int((maximum * Double(height) / longest).rounded()))
  }

  init(shorter: Int, isLandscape: Bool, hasAlpha: Bool) {
    let maximum = Int(Self.maximumWaves(hasAlpha: hasAlpha))
    let shorter = max(1, shorter)
    (across, down) = isLandscape ? (maximum, shorter) : (shorter, maximum)
  }

  private static func maximumWaves(hasAlpha: Bool) -> Double { hasAlpha ? 5 : 7 }

  /// The terms of the lightness; at least three along each side.
  var lightness: [Wave] { Self.waves(across: max(3, across), down: max(3, down)) }
  /// The terms of each of the two colour channels.
  static let color = waves(across: 3, down: 3)
  /// The terms of the alpha.
  static let alpha = waves(across: 5, down: 5)

  /// Returns the triangle of low frequencies, row by row, without the mean.
  private static func waves(across: Int, down: Int) -> [Wave] {
    var waves: [Wave] = []
    for y in 0..<down {
      for x in 0..<across where x * down < across * (down - y) && x + y > 0 {
        waves.append(Wave(x: x, y: y))
      }
    }
    return waves
  }
}

/// The cosines of all waves at the centres of pixels.
private struct Cosines {
  /// Values by number of half waves, then by pixel.
  let across: [[Double]]
  let down: [[Double]]

  init(_ size: PixelSize) {
    func table(_ length: Int) -> [[Double]] {
      (0..<7).map { number in
        (0..<length).map { cos(.pi / Double(length) * Double(number) * (Double($0) + 0.5)) }
      }
    }
    across = table(size.width)
    down = table(size.height)
  }
}

/// The terms of one channel.
private struct Channel {
  let mean: Double
  /// The largest amplitude.
  let scale: Double
  /// The amplitudes as shares: 0 is the largest negative one, 1 the largest positive one.
  let shares: [Double]
}

extension Channel {
  init(of values: [Double], size: PixelSize, waves: [Wave]) {
    let cosines = Cosines(size)
    func term(_ wave: Wave) -> Double {
      var sum = 0.0
      for y in 0..<size.height {
        var line = 0.0
        for x in 0..<size.width { line += values[y * size.width + x] * cosines.across[wave.x][x] }
        sum += line * cosines.down[wave.y][y]
      }
      return sum / Double(size.pixels)
    }
    let terms = waves.map(term)
    let largest = terms.reduce(0) { max($0, abs($1)) }
    mean = term(Wave(x: 0, y: 0))
    scale = largest
    shares = terms.map { largest > 0 ? 0.5 + 0.5 / largest * $0 : 0 }
  }

  /// Returns the channel's value at a pixel. The inverse transform doubles each term.
  func value(x: Int, y: Int, waves: [Wave], cosines: Cosines) -> Double {
    var value = mean
    for (wave, share) in zip(waves, shares) {
      value += (share * 2 - 1) * scale * 2 * cosines.across[wave.x][x] * cosines.down[wave.y][y]
    }
    return value
  }
}

/// An image in the channels of the hash, flattened onto its own mean colour.
private struct Colors {
  private(set) var lightness: [Double] = []
  private(set) var yellow: [Double] = []
  private(set) var red: [Double] = []
  private(set) var alpha: [Double] = []
  let hasAlpha: Bool

  init(of image: SmallImage) {
    let pixels = image.pixels.map { SIMD4<Double>($0) / 255 }
    var mean = SIMD4<Double>()
    for pixel in pixels { mean += pixel * SIMD4<Double>(pixel.w, pixel.w, pixel.w, 1) }
    if mean.w > 0 { mean /= SIMD4<Double>(mean.w, mean.w, mean.w, 1) }
    for pixel in pixels {
      let color = mean * (1 - pixel.w) + pixel * pixel.w
      lightness.append((color.x + color.y + color.z) / 3)
      yellow.append((color.x + color.y) / 2 - color.z)
      red.append(color.x - color.y)
      alpha.append(pixel.w)
    }
    hasAlpha = !image.isOpaque
  }
}
