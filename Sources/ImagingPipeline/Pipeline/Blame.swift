// Blame: decides whether the source or the requested variant caused a failure.

import CVips
import Model

/// Attributes a failure to the source or to the variant. Most libvips stages decode lazily, so the
/// failing stage alone does not tell.
enum Blame {
  /// Returns the failure of a job as it is reported.
  ///
  /// An ambiguous failure is settled by decoding the source once more without any transform. The
  /// extra time is spent only on failed jobs.
  ///
  /// - Returns: `ImageError.undecodable` if the source cannot be decoded at all; the same within
  ///   `.ofVariant` if only a later frame cannot; `.outOfMemory`; `.internal` if the source
  ///   decodes.
  static func settled(
    _ error: ImageError, source: UnsafeRawBufferPointer, header: SourceHeader, frames: Int
  ) -> ImageError {
    guard case .ofVariant(.undecodable(let detail)) = error else { return error }
    do throws(ImageError) {
      try decode(source, header: header, frames: frames)
      return .internal(detail: "the source can be decoded, its variant failed: \(detail)")
    } catch .ofVariant(.undecodable(let own)), .undecodable(let own) {
      if mayLackMemory(header, frames: frames) { return .outOfMemory(detail: own) }
      let failure = ImageError.undecodable(detail: own)
      return header.isLaterFrame ? .ofVariant(failure) : failure
    } catch {
      return error
    }
  }

  /// Whether an error's text reports a failed allocation, a thread's stack included.
  ///
  /// Three similar texts report something else: a library's limit on a size in a header, libtiff's complaint about a
  /// directory without entries, and Little CMS's about a profile in memory that ends early.
  static func isOfMemory(_ text: String) -> Bool {
    let text = text.lowercased().replacing("read from memory", with: "read")
    return ["memory", "allocat", "creating thread"].contains { text.contains($0) }
      && !text.contains("security limit") && !text.contains("(0 elements")
  }

  private static let maximumVectorPixels = 1_000_000.0

  /// Decodes every row of the pages opened for `frames` frames.
  private static func decode(
    _ source: UnsafeRawBufferPointer, header: SourceHeader, frames: Int
  ) throws(ImageError) {
    // A vector is drawn at a reduced scale because its nominal size is unbounded.
    let scale =
      header.format == .svg ? min(1, (maximumVectorPixels / header.size.area).squareRoot()) : 1
    let image = try Loader.open(
      source, as: header.format, pages: header.pages(frames: frames), scale: scale,
      failOn: try Loader.decoderFailOn(source, header: header))
    let rows = try PixelRows(of: image)
    for y in 0..<image.size.height { _ = try rows.row(y) }
  }

  /// Returns whether a decoder that reports no cause may have run out of memory. Decoders of these
  /// formats hold the whole image, in up to three copies.
  private static func mayLackMemory(_ header: SourceHeader, frames: Int) -> Bool {
    guard header.format.traits.decoderHoldsImage, let room = MemoryLeft.bytes else { return false }
    return header.size.pixels * 4 * 3 > room
  }
}
