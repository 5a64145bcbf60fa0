// References: effects and turns computed pixel by pixel, as references.

import Core
import Glibc
import TestSupport

extension Pixels {
  /// Returns an image with detail everywhere: waves in each colour, some sharp edges, and alpha
  /// that rises to the right if present.
  static func textured(width: Int, height: Int, bands: Int = 3) -> Pixels {
    Pixels(width: width, height: height, bands: bands) { x, y in
      let u = Double(x)
      let v = Double(y)
      let block = (x / 13 + y / 11).isMultiple(of: 3) ? 40.0 : 0
      let colors = [
        100 + 70 * sin(u / 6 + v / 15) + block, 110 + 80 * cos(v / 8) - block,
        120 + 60 * sin((u - v) / 10),
      ]
      .map { UInt8(min(max($0, 0), 255)) }
      let alpha = UInt8(min(255, x * 380 / width))
      return Array(colors.prefix(bands < 3 ? 1 : 3)) + (bands.isMultiple(of: 2) ? [alpha] : [])
    }
  }

  /// Returns the image rotated clockwise, then flipped.
  func turned(by rotation: Rotation, flip: Flip = .none) -> Pixels {
    let w = size.width
    let h = size.height
    let turned = Pixels(
      width: rotation.swapsSides ? h : w, height: rotation.swapsSides ? w : h, bands: bands
    ) { x, y in
      switch rotation {
      case .none: self[x, y]
      case .quarter: self[y, h - 1 - x]
      case .half: self[w - 1 - x, h - 1 - y]
      case .threeQuarters: self[w - 1 - y, x]
      }
    }
    let right = turned.size.width - 1
    let bottom = turned.size.height - 1
    return Pixels(width: right + 1, height: bottom + 1, bands: bands) { x, y in
      turned[
        flip == .horizontal || flip == .both ? right - x : x,
        flip == .vertical || flip == .both ? bottom - y : y]
    }
  }

  /// Changes each pixel separately; colours are fractions of 255.
  func mapped(_ change: ([Double]) -> [Double]) -> Pixels {
    Pixels(width: size.width, height: size.height, bands: bands) { x, y in
      change(self[x, y].map { Double($0) / 255 })
        .map { UInt8((min(max($0, 0), 1) * 255).rounded()) }
    }
  }

  /// The colours on black, without alpha.
  var onBlack: Pixels {
    Pixels(width: size.width, height: size.height, bands: max(1, bands - 1)) { x, y in
      let pixel = self[x, y]
      return pixel.dropLast().map { UInt8(Int($0) * Int(pixel[bands - 1]) / 255) }
    }
  }

  /// The last band.
  var alpha: Pixels {
    Pixels(width: size.width, height: size.height, bands: 1) { [self[$0, $1][bands - 1]] }
  }

  /// Convolves with a Gaussian of ±5 sigma, mirrored at the edges; colours are weighted by alpha.
  func blurred(by sigma: Double) -> Pixels {
    let hasAlpha = bands.isMultiple(of: 2)
    let w = size.width
    let h = size.height
    let across = Self.gaussian(count: w, sigma: sigma)
    let down = Self.gaussian(count: h, sigma: sigma)
    var result = self
    var planes = (0..<bands).map { band in
      (0..<w * h).map { index in
        let weight = hasAlpha && band < bands - 1 ? Double(values[index * bands + bands - 1]) : 255
        return Double(values[index * bands + band]) * weight / 255
      }
    }
    for band in 0..<bands {
      let plane = planes[band]
      var wide = [Double](repeating: 0, count: w * h)
      for y in 0..<h {
        for x in 0..<w {
          var sum = 0.0
          for other in 0..<w { sum += across[x * w + other] * plane[y * w + other] }
          wide[y * w + x] = sum
        }
      }
      for y in 0..<h {
        for x in 0..<w {
          var sum = 0.0
          for other in 0..<h { sum += down[y * h + other] * wide[other * w + x] }
          planes[band][y * w + x] = sum
        }
      }
    }
    for index in result.values.indices {
      let pixel = index / bands
      let band = index % bands
      let alpha = hasAlpha && band < bands - 1 ? planes[bands - 1][pixel] : 255
      let value = alpha < 0.5 ? 0 : planes[band][pixel] * 255 / alpha
      result.values[index] = UInt8(min(max(value, 0), 255).rounded())
    }
    return result
  }

  /// Returns the weight of each pixel of an axis for each other pixel.
  private static func gaussian(count: Int, sigma: Double) -> [Double] {
    let reach = Int((5 * sigma).rounded(.up))
    var weights = [Double](repeating: 0, count: count * count)
    let sum = (-reach...reach).reduce(0.0) { $0 + exp(-Double($1 * $1) / (2 * sigma * sigma)) }
    for x in 0..<count {
      for step in -reach...reach {
        var other = (x + step) % (2 * count)
        if other < 0 { other += 2 * count }
        if other >= count { other = 2 * count - 1 - other }
        weights[x * count + other] += exp(-Double(step * step) / (2 * sigma * sigma)) / sum
      }
    }
    return weights
  }
}

/// CIE Lab of D65, by the definitions of IEC 61966-2-1 and CIE 15:2004.
enum Lab {
  private static let matrix = [
    [0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505],
  ]
  private static let white = matrix.map { $0.reduce(0, +) }

  static func of(_ rgb: [Double]) -> [Double] {
    let light = rgb.map { $0 <= 0.04045 ? $0 / 12.92 : pow(($0 + 0.055) / 1.055, 2.4) }
    let roots = zip(matrix, white).map { row, white in
      let value = zip(row, light).map { $0 * $1 }.reduce(0, +) / white
      return value > 0.008856 ? cbrt(value) : (903.3 * value + 16) / 116
    }
    return [116 * roots[1] - 16, 500 * (roots[0] - roots[1]), 200 * (roots[1] - roots[2])]
  }

  static func rgb(_ lab: [Double]) -> [Double] {
    let y = (lab[0] + 16) / 116
    let xyz = zip([y + lab[1] / 500, y, y - lab[2] / 200], white).map { root, white in
      white * (root * root * root > 0.008856 ? root * root * root : (116 * root - 16) / 903.3)
    }
    // Cramer's rule.
    func determinant(_ m: [[Double]]) -> Double {
      m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    }
    return (0..<3).map { column in
      var replaced = matrix
      for row in 0..<3 { replaced[row][column] = xyz[row] }
      let light = determinant(replaced) / determinant(matrix)
      return light <= 0.0031308 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
    }
  }
}
