// Composite: a watermark composited by its definition, as a reference.

import Core
import TestSupport

extension Pixels {
  /// Composites `mark` over this image: Porter and Duff's `over` on straight values (Compositing
  /// Digital Images, 1984).
  ///
  /// - Parameters:
  ///   - x: The left edge of the mark.
  ///   - y: The upper edge of the mark.
  ///   - opacity: The factor for the mark's alpha.
  func under(_ mark: Pixels, x: Int, y: Int, opacity: Double = 1) -> Pixels {
    Pixels(width: size.width, height: size.height, bands: bands) { column, row in
      let u = column - x
      let v = row - y
      let below = self[column, row]
      guard (0..<mark.size.width).contains(u), (0..<mark.size.height).contains(v) else {
        return below
      }
      let colors = bands < 3 ? 1 : 3
      let above =
        mark.bands < 3 && colors == 3 ? mark.rgb(x: u, y: v) : Array(mark[u, v].prefix(colors))
      let markAlpha =
        opacity * (mark.bands.isMultiple(of: 2) ? Double(mark[u, v][mark.bands - 1]) / 255 : 1)
      let alpha = bands.isMultiple(of: 2) ? Double(below[bands - 1]) / 255 : 1
      let both = markAlpha + alpha * (1 - markAlpha)
      let mixed = zip(above, below).map { above, below in
        let value = Double(above) * markAlpha + Double(below) * alpha * (1 - markAlpha)
        return both == 0 ? 0 : UInt8((value / both).rounded())
      }
      return bands.isMultiple(of: 2) ? mixed + [UInt8((both * 255).rounded())] : mixed
    }
  }

  /// Returns the largest difference of two images' values, in 8-bit steps; 256 if sizes or bands
  /// differ. Colours count only where both images have considerable alpha.
  func largestDifference(to other: Pixels) -> Int {
    guard size == other.size, bands == other.bands else { return 256 }
    var largest = 0
    for y in 0..<size.height {
      for x in 0..<size.width {
        let left = self[x, y]
        let right = other[x, y]
        let isSeen =
          !bands.isMultiple(of: 2) || min(left[bands - 1], right[bands - 1]) > 24
        for band in 0..<bands where isSeen || band == bands - 1 {
          largest = max(largest, abs(Int(left[band]) - Int(right[band])))
        }
      }
    }
    return largest
  }
}
