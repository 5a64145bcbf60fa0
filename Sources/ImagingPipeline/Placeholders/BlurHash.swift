// BlurHash: encodes an image as about twenty characters (woltapp/blurhash, Algorithm.md).

import Glibc
import Model

/// The first terms of a cosine transform of an image in linear light: its mean colour, then one
/// amplitude per colour for each further term. Amplitudes have 19 steps, relative to the largest.
///
/// The text is in base 83, most significant digit first:
/// - One digit for the numbers of terms, `(across − 1) + (down − 1) · 9`.
/// - One digit for the largest amplitude, in 166ths.
/// - Four digits for the mean, `rrggbb` in sRGB.
/// - Two digits for each further term.
struct BlurHash: Equatable {
  /// The allowed number of terms in one direction.
  static let componentRange = 1...9

  /// The number of terms from left to right.
  let across: Int
  /// The number of terms from top to bottom.
  let down: Int
  /// The mean colour in sRGB, 0–255 for each component.
  let mean: SIMD3<Int>
  /// The largest amplitude, 0–82.
  private let swing: Int
  /// All terms except the first, row by row, as 0–18 for each colour; 9 means zero.
  private let steps: [SIMD3<Int>]

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
    swing = largest.map { min(82, max(0, Int(($0 * 166 - 0.5).rounded(.down)))) } ?? 0
    let unit = Double(swing + 1) / 166
    steps = terms.dropFirst().map { term in
      func step(_ value: Double) -> Int {
        let root = (abs(value) / unit).squareRoot() * (value < 0 ? -1 : 1)
        return min(18, max(0, Int((root * 9 + 9.5).rounded(.down))))
      }
      return SIMD3(step(term.x), step(term.y), step(term.z))
    }
    mean = SIMD3(SRGB.byte(terms[0].x), SRGB.byte(terms[0].y), SRGB.byte(terms[0].z))
    self.across = across
    self.down = down
  }

  /// Decodes the text of a hash; `nil` if the text is invalid.
  init?(text: String) {
    let digits = text.utf8.map { Self.alphabet.firstIndex(of: $0) }
    let values = digits.compactMap { $0 }
    guard values.count == digits.count, values.count >= 6, values[0] < 81 else { return nil }
    across = values[0] % 9 + 1
    down = values[0] / 9 + 1
    guard values.count == 4 + 2 * across * down else { return nil }
    let color = values[2..<6].reduce(0) { $0 * 83 + $1 }
    swing = values[1]
    mean = SIMD3(color >> 16 & 255, color >> 8 & 255, color & 255)
    steps = stride(from: 6, to: values.count, by: 2).map {
      let value = values[$0] * 83 + values[$0 + 1]
      return SIMD3(value / 361, value / 19 % 19, value % 19)
    }
  }

  /// The text of the hash.
  var text: String {
    var digits = Self.digits(across - 1 + (down - 1) * 9, count: 1)
    digits += Self.digits(swing, count: 1)
    digits += Self.digits(mean.x << 16 | mean.y << 8 | mean.z, count: 4)
    for step in steps { digits += Self.digits(step.x * 361 + step.y * 19 + step.z, count: 2) }
    return String(decoding: digits, as: UTF8.self)
  }

  /// Decodes the hash to an opaque image.
  func image(_ size: PixelSize) -> SmallImage {
    let unit = Double(swing + 1) / 166
    let terms =
      [SIMD3(SRGB.linear(mean.x), SRGB.linear(mean.y), SRGB.linear(mean.z))]
      + steps.map { step in
        func swing(_ step: Int) -> Double {
          let value = Double(step - 9) / 9
          return value * abs(value) * unit
        }
        return SIMD3(swing(step.x), swing(step.y), swing(step.z))
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

/// The transfer function of sRGB (IEC 61966-2-1).
enum SRGB {
  /// Returns the linear light, 0–1, of a value of 0–255.
  static func linear(_ byte: Int) -> Double {
    let value = Double(byte) / 255
    return value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
  }

  /// Returns the linear colours of all pixels; ignores alpha.
  static func linear(_ image: SmallImage) -> [SIMD3<Double>] {
    let table = (0...255).map { linear($0) }
    return image.pixels.map { SIMD3(table[Int($0.x)], table[Int($0.y)], table[Int($0.z)]) }
  }

  /// Returns the nearest value of 0–255 for linear light.
  static func byte(_ light: Double) -> Int {
    let light = min(max(light, 0), 1)
    let value = light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055
    return Int(value * 255 + 0.5)
  }
}
