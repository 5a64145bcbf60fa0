// Averages: reduces an image by averaging, before a blur.

import Model

extension Image {
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
