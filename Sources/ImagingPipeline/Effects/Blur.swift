// Blur: Gaussian blur and unsharp mask.

import CVips
import Core

extension Image {
  /// The largest sigma applied at full size. A wider blur is computed on a reduced image, because
  /// the work grows with sigma.
  private static let widestBlur = 2.5
  /// The target sigma on the reduced image. After a blur with this sigma, the reduced image can
  /// show all detail that is left.
  private static let reducedBlur = 2.0
  /// The amplitude at which the Gaussian is cut off, as a fraction of its peak: 3.3 sigmas from the
  /// centre.
  private static let leastAmplitude = 0.005

  /// Applies a Gaussian blur. The image is mirrored at its edges, so that no outside colour enters.
  /// Colours are premultiplied by alpha.
  ///
  /// - Parameter sigma: The standard deviation in pixels.
  consuming func blurred(by sigma: Double) throws(ImageError) -> Image {
    let size = self.size
    let format = self.format
    let hasAlpha = self.hasAlpha
    let full = fullAlpha
    var small = size
    var reducedSigma = sigma
    var image = try inMemory()
    if sigma > Self.widestBlur {
      let factor = sigma / Self.reducedBlur
      func reduced(_ side: Int) -> Int { max(1, Int((Double(side) / factor).rounded(.up))) }
      small = PixelSize(width: reduced(size.width), height: reduced(size.height))
      image = try image.averaged(to: small)
      // Uses the longer side, which rounding changes less. Averaging is itself a blur and variances
      // add up: that of n adjacent pixels is (n² - 1) / 12.
      let ratio = Double(max(small.width, small.height)) / Double(max(size.width, size.height))
      reducedSigma = (sigma * sigma * ratio * ratio - (1 - ratio * ratio) / 12).squareRoot()
      // The limit applies only to a reduced image of one pixel, which has a single colour.
      reducedSigma = min(reducedSigma, 2 * Self.reducedBlur)
    } else if hasAlpha {
      image = try image.premultiplied()
    }
    let margin = Int((3.3 * reducedSigma).rounded(.up)) + 1
    let whole = PixelSize(width: small.width + 2 * margin, height: small.height + 2 * margin)
    image = try image.made("blur", x: margin, y: margin, on: whole, "mirror")
    image = try image.made(
      "blur", by: "gaussblur",
      "sigma=\(reducedSigma),precision=float,min-ampl=\(Self.leastAmplitude)")
    image = try image.cut(x: margin, y: margin, small)
    // Resamples as floats, because 8-bit steps of the reduced image would show as bands.
    if small != size { image = try image.inMemory().resample(from: small, to: size) }
    if hasAlpha { image = try image.unpremultiplied(full) }
    // Rounds first, because a cast truncates.
    image = try image.made("blur", by: "round", "round=rint")
    return try image.cast(to: format).inMemory()
  }

  /// Applies an unsharp mask to the lightness with the settings that libvips recommends for
  /// screens. Differences below 2 L* stay, and no pixel gets lighter by more than 10 or darker by
  /// more than 20.
  ///
  /// - Parameter sigma: The standard deviation in pixels.
  consuming func sharpened(by sigma: Double) throws(ImageError) -> Image {
    guard hasAlpha else {
      return try inMemory().made("sharpen", by: "sharpen", "sigma=\(sigma)").inMemory()
    }
    let image = try inMemory()
    let alpha = try image.bands(image.bands - 1, count: 1)
    let sharp = try image.filled(with: sigma).made("sharpen", by: "sharpen", "sigma=\(sigma)")
    return try sharp.withVipsImage { sharp throws(ImageError) in
      try alpha.made("alpha") { pictor_vips_bandjoin2(sharp, $0, $1) }
    }.inMemory()
  }

  /// Returns an opaque image in which transparent pixels take the colours around them. The unsharp
  /// mask then finds no edges that exist only in alpha.
  private func filled(with sigma: Double) throws(ImageError) -> Image {
    let blurred = try copied("blur").blurred(by: max(sigma, Effects.blurRange.lowerBound))
    let rows = try PixelRows(of: blurred)
    let width = self.size.width
    let bands = self.bands
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

  /// Returns the averages of equal cells, with colours premultiplied by alpha. A pixel on the edge
  /// between two cells is shared in proportion, so mirroring at the image's edges stays exact.
  ///
  /// - Parameter target: The number of cells; at most the number of pixels on either axis.
  func averaged(to target: PixelSize) throws(ImageError) -> Image {
    let bands = self.bands
    let hasAlpha = self.hasAlpha
    let result = try Image(blank: target, bands: bands, profile: [])
    let rows = try PixelRows(of: self)
    let across = CellShares(pixels: size.width, cells: target.width)
    let down = CellShares(pixels: size.height, cells: target.height)
    let count = target.width * bands
    // The extra pixel at the end receives the empty share of the last pixel.
    var line = [Float](repeating: 0, count: count + bands)
    var sums = [Float](repeating: 0, count: count)
    var means = [UInt8](repeating: 0, count: count)
    let scale = Float(target.area / size.area)
    for y in 0..<size.height {
      Self.addUp(try rows.row(y), bands: bands, hasAlpha: hasAlpha, by: across, to: &line)
      for index in 0..<count { sums[index] += line[index] * down.shares[y] }
      guard down.endsCell(y) else { continue }
      for index in 0..<count {
        means[index] = UInt8(min(max((sums[index] * scale).rounded(), 0), 255))
        sums[index] = line[index] * (1 - down.shares[y])
      }
      try result.write(means, row: down.cells[y])
    }
    return result
  }

  /// Sums up a row into cells.
  private static func addUp(
    _ row: UnsafePointer<UInt8>, bands: Int, hasAlpha: Bool, by shares: CellShares,
    to line: inout [Float]
  ) {
    for index in line.indices { line[index] = 0 }
    for x in shares.cells.indices {
      let pixel = row + x &* bands
      let alpha = hasAlpha ? Float(pixel[bands &- 1]) / 255 : 1
      let start = shares.cells[x] &* bands
      let share = shares.shares[x]
      for band in 0..<bands {
        let value = Float(pixel[band]) * (hasAlpha && band == bands &- 1 ? 1 : alpha)
        line[start &+ band] += value * share
        line[start &+ bands &+ band] += value * (1 - share)
      }
    }
  }
}

/// The cell of each pixel on an axis, and the share of the pixel in that cell; the rest belongs to
/// the next cell.
private struct CellShares {
  let cells: [Int]
  let shares: [Float]
  private let pixelCount: Int
  private let cellCount: Int

  init(pixels: Int, cells count: Int) {
    pixelCount = pixels
    cellCount = count
    cells = (0..<pixels).map { $0 * count / pixels }
    shares = cells.enumerated().map { pixel, cell in
      Float(min(count, (cell + 1) * pixels - pixel * count)) / Float(count)
    }
  }

  /// Returns whether this pixel is the last one of its cell.
  func endsCell(_ pixel: Int) -> Bool {
    (pixel + 1) * cellCount >= (cells[pixel] + 1) * pixelCount
  }
}
