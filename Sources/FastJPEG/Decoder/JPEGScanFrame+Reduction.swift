// JPEGScanFrame+Reduction: the sizes of a JPEG's blocks in a reduced image.

import Model

extension JPEGScanFrame {
  /// Whether the frame is grey or YCbCr. As in libjpeg, components named R, G and B are these.
  var isGreyOrYCbCr: Bool {
    (components.count == 1 || components.count == 3) && components.map(\.id) != Array("RGB".utf8)
  }

  /// Returns the size of the reduced image: eighths of the full size, rounded up.
  func reduced(eighths: Int) -> PixelSize {
    PixelSize(width: (size.width * eighths + 7) / 8, height: (size.height * eighths + 7) / 8)
  }

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
  /// - Returns: `false` for another kind than a progressive grey or YCbCr.
  func keepCoefficients(eighths: Int) -> Bool {
    guard isProgressive, isGreyOrYCbCr else { return false }
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
