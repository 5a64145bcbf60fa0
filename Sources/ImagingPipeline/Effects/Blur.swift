// Blur: the Gaussian blur, and the unsharp mask.

import CVips
import Model

extension Image {
  /// A wider blur is made of a smaller image: beyond it the work would grow with sigma for nothing that is seen.
  private static let widestBlur = 2.5
  /// Sigma in the smaller image. Of what this blur leaves, two pixels a sigma show all: at their highest frequency it is
  /// damped to e^-19.
  private static let reducedBlur = 2.0
  /// Where the Gaussian is cut off, as a part of its height: 3.3 sigmas from the middle.
  private static let leastAmplitude = 0.005

  /// Blurred by a Gaussian. Beyond its edges the image goes on mirrored, so that nothing from outside comes in and none
  /// of it is lost. Colours are weighted by alpha.
  ///
  /// - Parameter sigma: In pixels.
  consuming func blurred(by sigma: Double) throws(ImageError) -> Image {
    let (size, format, hasAlpha, full) = (self.size, self.format, self.hasAlpha, fullAlpha)
    var small = size
    var reducedSigma = sigma
    var image = try inMemory()
    if sigma > Self.widestBlur {
      let factor = sigma / Self.reducedBlur
      func reduced(_ side: Int) -> Int { max(1, Int((Double(side) / factor).rounded(.up))) }
      small = PixelSize(width: reduced(size.width), height: reduced(size.height))
      image = try image.averaged(to: small)
      // By the longer side, which rounding changed less; of the other few pixels are left, and one colour of them. Means
      // are a blur themselves: variances add up, and that of n pixels side by side is (n² - 1) / 12.
      let ratio = Double(max(small.width, small.height)) / Double(max(size.width, size.height))
      reducedSigma = (sigma * sigma * ratio * ratio - (1 - ratio * ratio) / 12).squareRoot()
      // Only where one pixel is left it could be more, and that is one colour.
      reducedSigma = min(reducedSigma, 2 * Self.reducedBlur)
    } else if hasAlpha {
      image = try image.made("alpha") { pictor_vips_premultiply($0, $1, full) }
    }
    let margin = Int((3.3 * reducedSigma).rounded(.up)) + 1
    image = try image.made("blur") {
      pictor_vips_embed_mirrored(
        $0, $1, CInt(margin), CInt(margin), CInt(small.width + 2 * margin),
        CInt(small.height + 2 * margin))
    }
    image = try image.made("blur") {
      pictor_vips_gaussblur($0, $1, reducedSigma, Self.leastAmplitude)
    }
    image = try image.cut(x: margin, y: margin, small)
    // As floats, or the steps of the small image would be bands in the large one.
    if small != size { image = try image.inMemory().resample(from: small, to: size) }
    if hasAlpha { image = try image.made("alpha") { pictor_vips_unpremultiply($0, $1, full) } }
    // A cast alone cuts fractions off.
    image = try image.made("blur") { pictor_vips_rint($0, $1) }
    return try image.cast(to: format).inMemory()
  }

  /// With an unsharp mask on the lightness, as libvips recommends it for screens: differences of less than 2 L* stay, no
  /// pixel gets lighter by more than 10 or darker by more than 20.
  ///
  /// - Parameter sigma: In pixels.
  consuming func sharpened(by sigma: Double) throws(ImageError) -> Image {
    guard hasAlpha else {
      return try inMemory().made("sharpen") { pictor_vips_sharpen($0, $1, sigma) }.inMemory()
    }
    let image = try inMemory()
    let alpha = try image.bands(image.bands - 1, count: 1)
    let sharp = try image.filled(with: sigma).made("sharpen") {
      pictor_vips_sharpen($0, $1, sigma)
    }
    return try sharp.withVipsImage { sharp throws(ImageError) in
      try alpha.made("alpha") { pictor_vips_bandjoin2(sharp, $0, $1) }
    }.inMemory()
  }

  /// Opaque, with the colours of what is beside it where it was transparent: no edge that only alpha makes is left for the
  /// mask to find.
  private func filled(with sigma: Double) throws(ImageError) -> Image {
    let blurred = try made("blur") { pictor_vips_copy($0, $1) }.blurred(
      by: max(sigma, Effects.blurRange.lowerBound))
    let rows = try PixelRows(of: blurred)
    let (width, bands) = (self.size.width, self.bands)
    return try mapped(bands: bands - 1) { y, row, result throws(ImageError) in
      let around = try rows.row(y)
      for x in 0..<width {
        let alpha = Int(row[x * bands + bands - 1])
        for band in 0..<bands - 1 {
          let value = Int(row[x * bands + band]) * alpha
          let filling = Int(around[x * bands + band]) * (255 - alpha)
          result[x * (bands - 1) + band] = UInt8(truncatingIfNeeded: (value + filling + 127) / 255)
        }
      }
    }
  }
}
