// ThumbHash: encodes an image as about 25 bytes (evanw.github.io/thumbhash).

import Glibc
import Model

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

  init(mean: Double, scale: Double, shares: [Double]) {
    self.mean = mean
    self.scale = scale
    self.shares = shares
  }

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
