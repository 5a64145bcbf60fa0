// EffectSteps: applies the effects to an image of its final size, in order.

import Core
import Glibc

/// All effects take 8-bit sRGB or grey and return an image in memory, with at most 4 bytes per
/// pixel.
extension Effects {
  /// Applies the effects in the order of the contract; effects without a change are skipped.
  ///
  /// - Parameter density: Pixels per point of the result, the unit of `radius`.
  func apply(to image: consuming Image, density: Double) throws(ImageError) -> Image {
    if let blur { image = try image.blurred(by: blur) }
    if let sharpen { image = try image.sharpened(by: sharpen) }
    if let pixelate { image = try image.pixelated(by: pixelate) }
    if let radius { image = try image.rounded(by: radius.axes(in: image.size, density: density)) }
    guard let tone = Tone(self) else { return image }
    return try tone.apply(to: image)
  }
}

extension Image {
  /// Returns an image of the same size in memory, computed row by row.
  ///
  /// - Parameter change: Receives a row's index, its bytes, and the buffer for the result.
  func mapped(
    bands: Int,
    _ change: (Int, UnsafePointer<UInt8>, UnsafeMutablePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) -> Image {
    let size = self.size
    let result = try Image(blank: size, bands: bands, profile: [])
    let rows = try PixelRows(of: self)
    let line = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands)
    defer { line.deallocate() }
    line.initialize(repeating: 0, count: size.width * bands)
    for y in 0..<size.height {
      try change(y, try rows.row(y), line)
      try result.write(line, row: y)
    }
    return result
  }

  /// Makes squares of one colour, the mean of their pixels by their alpha. Those at the right and
  /// lower edge may be smaller.
  consuming func pixelated(by side: Int) throws(ImageError) -> Image {
    let (size, bands) = (self.size, self.bands)
    let colors = hasAlpha ? bands - 1 : bands
    let result = try Image(blank: size, bands: bands, profile: [])
    let rows = try PixelRows(of: self)
    let squares = (size.width + side - 1) / side
    var line = [UInt8](repeating: 0, count: size.width * bands)
    for top in stride(from: 0, to: size.height, by: side) {
      let lines = top..<min(top + side, size.height)
      // Of each square the weighted colours, and the weight.
      var sums = [Int](repeating: 0, count: squares * (colors + 1))
      for y in lines {
        let row = try rows.row(y)
        for x in 0..<size.width {
          let (pixel, sum) = (row + x &* bands, x / side &* (colors &+ 1))
          let weight = colors < bands ? Int(pixel[colors]) : 1
          for band in 0..<colors { sums[sum &+ band] &+= Int(pixel[band]) &* weight }
          sums[sum &+ colors] &+= weight
        }
      }
      for x in 0..<size.width {
        let sum = x / side * (colors + 1)
        let weight = sums[sum + colors]
        for band in 0..<colors where weight > 0 {
          line[x * bands + band] = UInt8((sums[sum + band] + weight / 2) / weight)
        }
        guard colors < bands else { continue }
        let pixels = (min(x / side * side + side, size.width) - x / side * side) * lines.count
        line[x * bands + colors] = UInt8((weight + pixels / 2) / pixels)
        if weight == 0 { for band in 0..<colors { line[x * bands + band] = 0 } }
      }
      for y in lines { try result.write(line, row: y) }
    }
    return result
  }

  /// The number of sample lines per row; along a line the coverage of a pixel is exact.
  private static let linesPerRow = 16

  /// Rounds the corners; pixels outside become transparent black.
  ///
  /// - Parameter corners: Half of the axes of each corner's ellipse in pixels, clockwise from the
  ///   top left. They fit into the image.
  consuming func rounded(by corners: [(x: Double, y: Double)]) throws(ImageError) -> Image {
    let image = hasAlpha ? self : try withOpaqueAlpha()
    let size = image.size
    let bands = image.bands
    let (width, height) = (Double(size.width), Double(size.height))
    let upper = max(corners[0].y, corners[1].y)
    let lower = height - max(corners[2].y, corners[3].y)
    func inset(_ corner: (x: Double, y: Double), at distance: Double) -> Double {
      guard distance < corner.y else { return 0 }
      let rise = 1 - distance / corner.y
      return corner.x * (1 - (1 - rise * rise).squareRoot())
    }
    var lines = [(left: Double, right: Double)](repeating: (0, 0), count: Self.linesPerRow)
    return try image.mapped(bands: bands) { y, row, result throws(ImageError) in
      result.update(from: row, count: size.width * bands)
      guard Double(y) < upper || Double(y + 1) > lower else { return }
      for line in lines.indices {
        let middle = Double(y) + (Double(line) + 0.5) / Double(Self.linesPerRow)
        lines[line] = (
          max(inset(corners[0], at: middle), inset(corners[3], at: height - middle)),
          width - max(inset(corners[1], at: middle), inset(corners[2], at: height - middle))
        )
      }
      let left = min(Int(lines.reduce(0) { max($0, $1.left) }.rounded(.up)), size.width)
      let right = max(left, Int(lines.reduce(width) { min($0, $1.right) }))
      for columns in [0..<left, right..<size.width] {
        for x in columns {
          var inside = 0.0
          for line in lines {
            inside += max(0, min(Double(x + 1), line.right) - max(Double(x), line.left))
          }
          Self.keep(inside / Double(Self.linesPerRow), of: result + x * bands, bands: bands)
        }
      }
    }
  }

  private static func keep(_ share: Double, of pixel: UnsafeMutablePointer<UInt8>, bands: Int) {
    let alpha = UInt8((Double(pixel[bands - 1]) * min(share, 1)).rounded())
    pixel[bands - 1] = alpha
    // The colour is invisible, and zeros encode to fewer bytes.
    if alpha == 0 { pixel.update(repeating: 0, count: bands - 1) }
  }
}

extension CornerRadius {
  /// Returns half of the axes of each corner's ellipse in pixels, clockwise from the top left.
  /// Radii that do not fit on a side shrink together (CSS Backgrounds and Borders 3, 4.5).
  fileprivate func axes(in size: PixelSize, density: Double) -> [(x: Double, y: Double)] {
    let (width, height) = (Double(size.width), Double(size.height))
    let radii: [Double]
    switch self {
    case .ellipse: return Array(repeating: (width / 2, height / 2), count: 4)
    case .maximum: radii = Array(repeating: min(width, height) / 2, count: 4)
    case .points(let points): radii = Array(repeating: Double(points) * density, count: 4)
    case .corners(let points): radii = points.map { Double($0) * density }
    }
    let fit = (0..<4).reduce(1) {
      min($0, ($1.isMultiple(of: 2) ? width : height) / (radii[$1] + radii[($1 + 1) % 4]))
    }
    return radii.map { ($0 * fit, $0 * fit) }
  }
}

/// Applies all tone effects in one pass over the pixels. Alpha stays unchanged.
struct Tone {
  private let tint: Color?
  private let isGrayscale: Bool
  private let brightness: Float
  private let saturation: Float
  /// The cosine and the sine of the degrees by which hues turn.
  private let turn: (cosine: Float, sine: Float)
  private let turnsHue: Bool
  private let sepia: Double
  /// The last step, for single values: contrast, gamma, and the negative.
  private let last: [UInt8]?

  /// Returns `nil` if no effect changes the image.
  init?(_ effects: Effects) {
    tint = effects.tint.flatMap { $0.alpha == 0 ? nil : $0 }
    isGrayscale = effects.isGrayscale
    brightness = Float(effects.brightness)
    saturation = Float(effects.saturation)
    turnsHue = effects.hue != 0
    let angle = Double(effects.hue) * .pi / 180
    turn = (Float(cos(angle)), Float(sin(angle)))
    sepia = effects.sepia
    let changesValues = effects.contrast != 1 || effects.gamma != 1 || effects.isNegative
    last =
      changesValues
      ? (0...255).map { value in
        var value = (Double(value) / 255 - 0.5) * effects.contrast + 0.5
        value = pow(min(max(value, 0), 1), 1 / effects.gamma)
        return UInt8((255 * (effects.isNegative ? 1 - value : value)).rounded())
      } : nil
    guard
      tint != nil || isGrayscale || brightness != 1 || saturation != 1 || turnsHue || sepia > 0
        || last != nil
    else { return nil }
  }

  /// Applies the effects to an image. Returns a grey image if that can show the result.
  func apply(to image: consuming Image) throws(ImageError) -> Image {
    if let tint { image = try image.able(toShow: tint) }
    if sepia > 0 { image = try image.able(toShow: Color(red: 255, green: 0, blue: 0)) }
    let bands = image.bands
    let width = image.size.width
    let colors = bands < 3 ? 1 : 3
    let alphas = bands.isMultiple(of: 2) ? 1 : 0
    let results = isGrayscale && sepia == 0 ? 1 : colors
    let tinted = tables(for: image.components(of: tint ?? .white))
    let lighter = brightnessTable
    let changesColor =
      results == 3 && !isGrayscale && (brightness != 1 || saturation != 1 || turnsHue)
    return try image.mapped(bands: results + alphas) { _, row, result throws(ImageError) in
      for x in 0..<width {
        let pixel = row + x &* bands
        let out = result + x &* (results &+ alphas)
        if colors == 1 {
          out[0] = lighter[Int(tinted[0][Int(pixel[0])])]
        } else {
          let color = (
            tinted[0][Int(pixel[0])], tinted[1][Int(pixel[1])], tinted[2][Int(pixel[2])]
          )
          if results == 1 {
            out[0] = lighter[Int(Self.grey(color))]
          } else {
            var made = changesColor ? changed(color) : color
            if isGrayscale {
              let grey = lighter[Int(Self.grey(color))]
              made = (grey, grey, grey)
            }
            (out[0], out[1], out[2]) = sepia > 0 ? browned(made) : made
          }
        }
        if let last { for band in 0..<results { out[band] = last[Int(out[band])] } }
        if alphas == 1 { out[results] = pixel[bands &- 1] }
      }
    }
  }

  // MARK: Tables

  /// Returns a table for each band that composites the tint over a value by the tint's alpha, in
  /// sRGB values. Core Graphics does the same for SDImageTintTransformer.
  private func tables(for colors: [Double]) -> [[UInt8]] {
    let strength = Double(tint?.alpha ?? 0) / 255
    return colors.map { color in
      (0...255).map { UInt8((Double($0) + (color - Double($0)) * strength).rounded()) }
    }
  }

  /// The table of brightness for grey values.
  private var brightnessTable: [UInt8] {
    (0...255).map { (value: UInt8) in
      brightness == 1 ? value : changed((value, value, value)).0
    }
  }

  /// The light of each value (IEC 61966-2-1).
  private static let light: [Float] = (0...255).map { Float(SRGB.linear($0)) }

  /// The value of each amount of light. At the steepest part, near black, a step is a fifth of a
  /// value.
  private static let values: [UInt8] = (0...lightSteps).map {
    UInt8((255 * SRGB.value(Double($0) / Double(lightSteps))).rounded())
  }

  private static let lightSteps = 16_384

  private static func value(of light: Float) -> UInt8 {
    values[Int((min(max(light, 0), 1) * Float(lightSteps)).rounded())]
  }

  // MARK: Colours

  private typealias RGB = (UInt8, UInt8, UInt8)

  /// Returns the grey of the same lightness.
  private static func grey(_ color: RGB) -> UInt8 {
    value(
      of: luminance(red: light[Int(color.0)], green: light[Int(color.1)], blue: light[Int(color.2)])
    )
  }

  /// Returns CIE's Y of linear sRGB.
  private static func luminance(red: Float, green: Float, blue: Float) -> Float {
    0.212_639_0 * red + 0.715_168_7 * green + 0.072_192_3 * blue
  }

  /// Multiplies lightness and chroma and turns the hue: CIE LCh of D65, as in sharp's `modulate`.
  /// Colours outside sRGB are clipped.
  private func changed(_ color: RGB) -> RGB {
    let red = Self.light[Int(color.0)]
    let green = Self.light[Int(color.1)]
    let blue = Self.light[Int(color.2)]
    // X and Z are relative to white, so that a grey has three equal values.
    let x = Self.root(0.433_887_3 * red + 0.376_224_0 * green + 0.189_888_6 * blue)
    let y = Self.root(Self.luminance(red: red, green: green, blue: blue))
    let z = Self.root(0.017_750_0 * red + 0.109_447_6 * green + 0.872_802_3 * blue)
    // L* is 116 y - 16. a* and b*, and thus their chroma, are proportional to x - y and y - z.
    let lightness = (brightness * (116 * y - 16) + 16) / 116
    // a* is 500 (x - y), b* is 200 (y - z).
    let a = saturation * (x - y)
    let b = saturation * (y - z)
    let newA = turnsHue ? turn.cosine * a - turn.sine * b * 0.4 : a
    let newB = turnsHue ? turn.sine * a * 2.5 + turn.cosine * b : b
    let newX = Self.unrooted(lightness + newA) * 0.950_455_9
    let newY = Self.unrooted(lightness)
    let newZ = Self.unrooted(lightness - newB) * 1.089_057_8
    return (
      Self.value(of: 3.240_969_9 * newX - 1.537_383_2 * newY - 0.498_610_8 * newZ),
      Self.value(of: -0.969_243_6 * newX + 1.875_967_5 * newY + 0.041_555_1 * newZ),
      Self.value(of: 0.055_630_1 * newX - 0.203_977_0 * newY + 1.056_971_5 * newZ)
    )
  }

  /// Mixes a colour with its sepia (Filter Effects Module Level 1, `sepia()`).
  private func browned(_ color: RGB) -> RGB {
    let (red, green, blue) = (Double(color.0), Double(color.1), Double(color.2))
    func mixed(_ value: Double, _ r: Double, _ g: Double, _ b: Double) -> UInt8 {
      let brown = r * red + g * green + b * blue
      return UInt8(min(value + (brown - value) * sepia, 255).rounded())
    }
    return (
      mixed(red, 0.393, 0.769, 0.189), mixed(green, 0.349, 0.686, 0.168),
      mixed(blue, 0.272, 0.534, 0.131)
    )
  }

  /// The cube root of CIE lightness, with a straight line near black (CIE 15:2004, 8.2.1).
  private static func root(_ value: Float) -> Float {
    value > 216 / 24_389 ? cbrtf(value) : (24_389 / 27 * value + 16) / 116
  }

  /// The inverse of `root`.
  private static func unrooted(_ root: Float) -> Float {
    root > 6 / 29 ? root * root * root : (116 * root - 16) * 27 / 24_389
  }
}
