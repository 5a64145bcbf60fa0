// JPEGScanFrame+Reduction: the sizes of a progressive JPEG's blocks in a reduced image.

extension JPEGScanFrame {
  /// The pixels that a side of a block can be reduced to.
  private static let sides: Set = [1, 2, 3, 4, 6, 8]

  /// The units of the image, and the blocks of the largest component in each. The blocks of a single component are not
  /// interleaved, whatever its factors are (T.81, A.2.2).
  var grid: (across: Int, down: Int, blocks: (across: Int, down: Int)) {
    guard components.count > 1 else {
      return (components[0].columns, components[0].rows, (1, 1))
    }
    return (
      units.across, units.down,
      (components.map(\.inUnit.across).max() ?? 1, components.map(\.inUnit.down).max() ?? 1)
    )
  }

  /// The blocks of a component in a unit.
  func blocks(of component: Component) -> (across: Int, down: Int) {
    components.count > 1 ? component.inUnit : (1, 1)
  }

  /// Returns the pixels that a component's blocks are reduced to: a subsampled one is reduced less, to the size of the
  /// others. `nil` for sizes without a transform.
  func side(of component: Component, eighths: Int) -> (across: Int, down: Int)? {
    let most = grid.blocks
    let own = blocks(of: component)
    let across = eighths * most.across / own.across
    let down = eighths * most.down / own.down
    let isWhole = most.across.isMultiple(of: own.across) && most.down.isMultiple(of: own.down)
    return isWhole && Self.sides.contains(across) && Self.sides.contains(down)
      ? (across, down) : nil
  }

  /// Makes room for the coefficients that the reduced image shows.
  ///
  /// - Returns: `false` for another kind than a progressive grey or YCbCr. As in libjpeg, components named R, G and B are
  ///   these.
  func keepCoefficients(eighths: Int) -> Bool {
    guard isProgressive, components.count == 1 || components.count == 3,
      components.map(\.id) != Array("RGB".utf8)
    else { return false }
    for index in components.indices {
      guard let side = side(of: components[index], eighths: eighths) else { return false }
      let own = blocks(of: components[index])
      components[index].coefficients = JPEGCoefficients(
        kept: JPEGBasis.last(across: side.across, down: side.down) + 1,
        columns: grid.across * own.across, rows: grid.down * own.down)
    }
    return true
  }
}
