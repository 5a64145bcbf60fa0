// SourceVerification: a look at all of a source's pixels for who passes it on as it is.

import Model

/// Holds a source to what may be damaged, without making anything of it.
struct SourceVerification {
  let source: UnsafeRawBufferPointer
  let header: SourceHeader

  /// Walks over the coded data where there is a check for the format; decodes all pixels where there is none.
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
