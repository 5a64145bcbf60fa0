// JPEGBasis: the contribution of a JPEG coefficient to each pixel of the reduced block.

import Glibc

/// An inverse cosine transform of the lowest frequencies only: as many as the reduced block has
/// pixels. Higher frequencies would alias.
///
/// The transform is a sum with one pattern for each coefficient. Zero coefficients, which are the
/// majority, cost nothing. The result is closer to Lanczos3 from the full image than libjpeg's
/// averages of pixels.
struct JPEGBasis {
  /// The pixels that a block is reduced to, across and down: 1–4, 6 or 8.
  let size: (across: Int, down: Int)
  /// The values from one row of a pattern to the next.
  let pitch: Int
  /// The values of a pattern. Of 3 by 3 pixels it has 16, which fill vectors; the excess is 0.
  let count: Int
  /// For each coefficient in file order, `count` values, one for each pixel of a block, row by row.
  let patterns: [Float]
  /// The last coefficient with a pattern other than zero.
  let last: Int

  /// Computes the patterns.
  ///
  /// - Parameter quantization: The factors of the coefficients, in file order.
  init(across: Int, down: Int, quantization: [UInt16]) {
    size = (across, down)
    let isPadded = across == 3 && down == 3
    let pitch = isPadded ? 4 : across
    let count = isPadded ? 16 : across * down
    last = Self.last(across: across, down: down)
    let columns = Self.waves(across)
    let rows = Self.waves(down)
    patterns = zip(Self.zigzag, quantization).flatMap { place, factor in
      let u = place % 8
      let v = place / 8
      return (0..<count).map { index in
        let x = index % pitch
        let y = index / pitch
        return x < across && y < down ? Float(columns[x][u] * rows[y][v] * Double(factor)) : 0
      }
    }
    self.pitch = pitch
    self.count = count
  }

  /// Returns the last coefficient, in file order, that a block of this size shows.
  static func last(across: Int, down: Int) -> Int {
    zigzag.lastIndex { $0 % 8 < across && $0 / 8 < down } ?? 0
  }

  /// Returns the values of the 8 frequencies for each of `count` pixels of a side (T.81, A.3.3); 0
  /// for frequencies that are not representable.
  private static func waves(_ count: Int) -> [[Double]] {
    (0..<count).map { pixel in
      (0..<8).map { frequency in
        guard frequency < count else { return 0 }
        let scale = (frequency == 0 ? 0.5.squareRoot() : 1) / 2
        return scale * cos(Double((2 * pixel + 1) * frequency) * .pi / Double(2 * count))
      }
    }
  }

  /// The row-by-row position of each coefficient in file order (T.81, figure A.6).
  private static let zigzag: [Int] = {
    let diagonals = (0..<15).map { sum in
      // Even diagonals run up to the right, odd ones down to the left.
      let places = (max(0, sum - 7)...min(sum, 7)).map { x in (sum - x) * 8 + x }
      return sum.isMultiple(of: 2) ? places : places.reversed()
    }
    return diagonals.flatMap { $0 }
  }()
}
