// ScaledProgressiveDecoder: decodes a progressive JPEG directly at one to four eighths of its size.

import Model

/// A decoder for progressive JPEGs, grey or YCbCr.
///
/// The check for damage has to walk over all codes anyway. This decoder keeps the coefficients that the reduced image
/// shows while it walks, so libjpeg need not read the codes again.
public struct ScaledProgressiveDecoder {
  /// The size of the reduced image: eighths of the full size, rounded up.
  public let size: PixelSize
  /// The size of the full image.
  public var sourceSize: PixelSize { frame.size }
  /// The bands of the reduced image: 1 for grey or 3 for RGB.
  public var bands: Int { frame.components.count }

  private let frame: JPEGScanFrame
  private let bases: [JPEGBasis]
  private let eighths: Int

  /// Reads all scans.
  ///
  /// - Parameter eighths: How much of each side is left, in eighths: 1–4.
  /// - Returns: `nil` if the data is damaged or incomplete, or of a kind that this decoder does not support.
  public init?(_ source: UnsafeRawBufferPointer, eighths: Int) {
    guard let frame = JPEGCheck.coefficients(of: source, eighths: eighths) else { return nil }
    var bases: [JPEGBasis] = []
    for component in frame.components {
      guard let side = frame.side(of: component, eighths: eighths),
        let quantization = component.quantization, component.coefficients != nil
      else { return nil }
      bases.append(JPEGBasis(across: side.across, down: side.down, quantization: quantization))
    }
    self.frame = frame
    self.bases = bases
    self.eighths = eighths
    size = frame.reduced(eighths: eighths)
  }

  /// Computes the pixels.
  ///
  /// - Parameter write: Receives each row, `size.width × bands` bytes, from top to bottom; valid
  ///   during the call.
  public func run(
    write: (_ y: Int, UnsafePointer<UInt8>) throws(ImageError) -> Void
  ) throws(ImageError) {
    let grid = frame.grid
    let height = grid.blocks.down * eighths
    let stride = grid.across * grid.blocks.across * eighths
    let planes = UnsafeMutablePointer<Float>.allocate(capacity: stride * height * bands)
    planes.initialize(repeating: 0, count: stride * height * bands)
    // Each pixel is written as 4 bytes; the next pixel overwrites the excess.
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands + 4)
    defer {
      planes.deallocate()
      row.deallocate()
    }
    for unitRow in 0..<grid.down {
      for index in 0..<bands {
        paint(index, unitRow: unitRow, to: planes + index * stride * height, stride: stride)
      }
      let top = unitRow * height
      for y in top..<min(top + height, size.height) {
        let light = UnsafePointer(planes + (y - top) * stride)
        let colours = bands == 3 ? (light + stride * height, light + 2 * stride * height) : nil
        JPEGRow.paint(light, colours: colours, width: size.width, into: row)
        try write(y, row)
      }
    }
  }

  /// Computes a component's blocks in a row of units.
  private func paint(
    _ index: Int, unitRow: Int, to plane: UnsafeMutablePointer<Float>, stride: Int
  ) {
    guard let store = frame.components[index].coefficients else { return }
    let sum = JPEGBlockSum(bases[index])
    let (across, down) = bases[index].size
    let rows = frame.blocks(of: frame.components[index]).down
    withUnsafeTemporaryAllocation(of: UInt32.self, capacity: 64) { words in
      guard let words = words.baseAddress else { return }
      for blockRow in 0..<rows {
        let target = plane + blockRow * down * stride
        for column in 0..<store.columns {
          let block = store.block(column: column, row: unitRow * rows + blockRow)
          var found = 0
          for place in 1..<store.kept where block[place] != 0 {
            let number = Self.clamped(block[place], to: Self.highest.detail)
            words[found] = JPEGCoefficient.packed(number, at: place)
            found &+= 1
          }
          sum.paint(
            mean: Self.clamped(block[0], to: Self.highest.mean), words, found,
            to: target + column * across, stride: stride)
        }
      }
    }
  }

  /// The highest DC and AC coefficients of 8-bit samples (T.81, F.1.2), on which `JPEGRow` relies. Damage may exceed them.
  private static let highest: (mean: Int, detail: Int) = (2_047, 1_023)

  @inline(__always)
  private static func clamped(_ coefficient: Int16, to highest: Int) -> Int {
    min(max(Int(coefficient), -highest), highest)
  }
}
