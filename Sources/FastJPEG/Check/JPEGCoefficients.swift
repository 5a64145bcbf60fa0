// JPEGCoefficients: the coefficients of a progressive JPEG that a reduced image shows.

/// The first coefficients, in file order, of all blocks of a component.
final class JPEGCoefficients {
  /// The coefficients of a block.
  let kept: Int
  /// The blocks of a row, with those that fill the last unit.
  let columns: Int
  /// Block by block, row by row. Owned; freed by `deinit`.
  let values: UnsafeMutablePointer<Int16>

  /// - Parameters:
  ///   - kept: The coefficients of a block, 1–64.
  ///   - columns: The blocks of a row.
  ///   - rows: The rows of blocks.
  init(kept: Int, columns: Int, rows: Int) {
    self.kept = kept
    self.columns = columns
    values = .allocate(capacity: kept * columns * rows)
    values.initialize(repeating: 0, count: kept * columns * rows)
  }

  deinit { values.deallocate() }

  /// Returns where the coefficients of a block are.
  @inline(__always)
  func block(column: Int, row: Int) -> UnsafeMutablePointer<Int16> {
    values + (row &* columns &+ column) &* kept
  }
}
