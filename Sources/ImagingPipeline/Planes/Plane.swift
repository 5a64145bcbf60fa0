// Plane: one component of a decoded image, as a decoder has it in memory.

import Model

/// Rows of samples in memory that a decoder owns.
struct Plane {
  /// The first sample of the top row.
  let start: UnsafeRawPointer
  /// The bytes from a row to the next.
  let stride: Int
  let size: PixelSize
  /// The bits of a sample: 8, in one byte, or up to 14, in two bytes in the processor's order.
  let depth: Int

  /// The bytes of a sample.
  var sampleBytes: Int { depth > 8 ? 2 : 1 }

  /// Returns an area of the plane.
  func cut(_ area: PixelArea) -> Plane {
    Plane(
      start: start + area.y * stride + area.x * sampleBytes, stride: stride,
      size: area.size, depth: depth)
  }
}

/// The planes of a decoded image, in one of the usual colour models of video.
struct PlanarImage {
  let luma: Plane
  /// Cb and Cr, of half or all of the samples on each axis.
  let chroma: (blue: Plane, red: Plane)
  let matrix: ColourMatrix

  /// - Returns: `nil` if the planes do not fit together.
  init?(luma: Plane, blue: Plane, red: Plane, matrix: ColourMatrix) {
    guard [blue.size, red.size].allSatisfy({ Self.isColour($0, of: luma.size) }),
      blue.size == red.size, blue.depth == luma.depth, red.depth == luma.depth
    else { return nil }
    self.luma = luma
    chroma = (blue, red)
    self.matrix = matrix
  }

  /// The samples of luma for one of colour, across and down: 1 or 2.
  var sampling: (across: Int, down: Int) {
    (
      chroma.blue.size.width < luma.size.width ? 2 : 1,
      chroma.blue.size.height < luma.size.height ? 2 : 1
    )
  }

  /// Whether a colour plane has all samples, half of them across, or half of them across and down.
  private static func isColour(_ size: PixelSize, of luma: PixelSize) -> Bool {
    let half = PixelSize(width: (luma.width + 1) / 2, height: (luma.height + 1) / 2)
    return [luma, half, PixelSize(width: half.width, height: luma.height)].contains(size)
  }
}
