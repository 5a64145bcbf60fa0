// SourceVerification: checks all pixels of a source that is passed through unchanged.

import Model

/// Checks a source for damage without producing a result.
struct SourceVerification {
  let source: UnsafeRawBufferPointer
  let header: SourceHeader

  /// Checks the coded data if the format has a check; otherwise decodes all pixels.
  ///
  /// - Throws: `ImageError.undecodable`.
  func run() throws(ImageError) {
    let soundness = Soundness(of: source, as: header.format)
    try soundness.check(header.failOn)
    guard soundness != .whole else { return }
    let image = try Loader.open(
      source, as: header.format, pages: header.isAnimation ? .all : .first,
      failOn: header.failOn)
    let height = image.size.height
    let rows = try PixelRows(of: image)
    for y in 0..<height { _ = try rows.row(y) }
  }
}
