// Tone: the effects that look at one pixel at a time: tint, grayscale, brightness, saturation.

import Glibc
import Model

/// They are one pass over the pixels. Alpha stays what it is.
struct Tone {
  private let tint: Color?
  private let isGrayscale: Bool
  private let brightness: Float
  private let saturation: Float

  /// `nil` where nothing is to be done.
  init?(_ effects: Effects) {
    tint = effects.tint.flatMap { $0.alpha == 0 ? nil : $0 }
    isGrayscale = effects.isGrayscale
    brightness = Float(effects.brightness)
    saturation = Float(effects.saturation)
    guard tint != nil || isGrayscale || brightness != 1 || saturation != 1 else { return nil }
  }

  /// An image's pixels so changed: a grey one where that shows all of it.
  func apply(to image: consuming Image) throws(ImageError) -> Image {
    if let tint { image = try image.able(toShow: tint) }
    let (bands, width) = (image.bands, image.size.width)
    let (colors, alphas) = (bands < 3 ? 1 : 3, bands.isMultiple(of: 2) ? 1 : 0)
    let results = isGrayscale ? 1 : colors
    let tinted = tables(for: image.components(of: tint ?? .white))
    let lighter = brightnessTable
    let changesColor = results == 3 && (brightness != 1 || saturation != 1)
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
            (out[0], out[1], out[2]) = changesColor ? changed(color) : color
          }
        }
        if alphas == 1 { out[results] = pixel[bands &- 1] }
      }
    }
  }

  // MARK: Tables

  /// For each band, what the tint makes of a value: the colour over it by its alpha, in sRGB's numbers, as Core Graphics
  /// draws it for SDImageTintTransformer.
  private func tables(for colors: [Double]) -> [[UInt8]] {
    let strength = Double(tint?.alpha ?? 0) / 255
    return colors.map { color in
      (0...255).map { UInt8((Double($0) + (color - Double($0)) * strength).rounded()) }
    }
  }

  /// What the brightness makes of a grey.
  private var brightnessTable: [UInt8] {
    (0...255).map { (value: UInt8) in
      brightness == 1 ? value : changed((value, value, value)).0
    }
  }

  /// IEC 61966-2-1: the light of each value.
  private static let light: [Float] = (0...255).map {
    let value = Double($0) / 255
    return Float(value <= 0.040_45 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4))
  }

  /// The value of each amount of light. At its steepest, near black, a step is a fifth of a value.
  private static let values: [UInt8] = (0...lightSteps).map {
    let light = Double($0) / Double(lightSteps)
    let value = light <= 0.003_130_8 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055
    return UInt8((255 * value).rounded())
  }

  private static let lightSteps = 16_384

  private static func value(of light: Float) -> UInt8 {
    values[Int((min(max(light, 0), 1) * Float(lightSteps)).rounded())]
  }

  // MARK: Colours

  private typealias RGB = (UInt8, UInt8, UInt8)

  /// The grey of the same lightness.
  private static func grey(_ color: RGB) -> UInt8 {
    value(of: luminance(light[Int(color.0)], light[Int(color.1)], light[Int(color.2)]))
  }

  /// CIE's Y of linear sRGB.
  private static func luminance(_ red: Float, _ green: Float, _ blue: Float) -> Float {
    0.212_639_0 * red + 0.715_168_7 * green + 0.072_192_3 * blue
  }

  /// Lightness and chroma multiplied, the hue kept: CIE LCh of D65, as sharp's `modulate` has it. What sRGB cannot show is
  /// clipped.
  private func changed(_ color: RGB) -> RGB {
    let (red, green, blue) = (
      Self.light[Int(color.0)], Self.light[Int(color.1)], Self.light[Int(color.2)]
    )
    // X and Z as parts of white's, so that greys have three equal numbers.
    let x = Self.root(0.433_887_3 * red + 0.376_224_0 * green + 0.189_888_6 * blue)
    let y = Self.root(Self.luminance(red, green, blue))
    let z = Self.root(0.017_750_0 * red + 0.109_447_6 * green + 0.872_802_3 * blue)
    // L* is 116 y - 16; a* and b* are multiples of x - y and y - z, and so is the chroma of both.
    let lightness = (brightness * (116 * y - 16) + 16) / 116
    let newX = Self.unrooted(lightness + saturation * (x - y)) * 0.950_455_9
    let newY = Self.unrooted(lightness)
    let newZ = Self.unrooted(lightness - saturation * (y - z)) * 1.089_057_8
    return (
      Self.value(of: 3.240_969_9 * newX - 1.537_383_2 * newY - 0.498_610_8 * newZ),
      Self.value(of: -0.969_243_6 * newX + 1.875_967_5 * newY + 0.041_555_1 * newZ),
      Self.value(of: 0.055_630_1 * newX - 0.203_977_0 * newY + 1.056_971_5 * newZ)
    )
  }

  /// CIE 15:2004, 8.2.1: the cube root that lightness goes by, and a straight line near black.
  private static func root(_ value: Float) -> Float {
    value > 216 / 24_389 ? cbrtf(value) : (24_389 / 27 * value + 16) / 116
  }

  /// The reverse of `root`.
  private static func unrooted(_ root: Float) -> Float {
    root > 6 / 29 ? root * root * root : (116 * root - 16) * 27 / 24_389
  }
}
