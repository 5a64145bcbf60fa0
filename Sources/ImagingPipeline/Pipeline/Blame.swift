// Blame: whether a failure is the source's own, or of what was asked for.

import CVips
import Model

/// Finds out what a stage failed of that both decodes and works on what was decoded, as most stages of libvips's do.
enum Blame {
  /// The failure of a job as it is to be told.
  ///
  /// One that may be the source's or the stage's is settled by an experiment: the source is decoded once more, as it is,
  /// and nothing else is done to it. That takes time, but only where a job failed.
  ///
  /// - Returns: `ImageError.undecodable` where the source cannot be decoded, whatever is asked for; the same within
  ///   `.ofVariant` where one of its later frames cannot; `.outOfMemory`; `.internal` where the source is well.
  static func settled(
    _ error: ImageError, source: UnsafeRawBufferPointer, header: SourceHeader, frames: Int
  ) -> ImageError {
    guard case .ofVariant(.undecodable(let detail)) = error else { return error }
    do throws(ImageError) {
      try decode(source, header, frames)
      return .internal(detail: "the source can be decoded, its variant failed: \(detail)")
    } catch .ofVariant(.undecodable(let own)), .undecodable(let own) {
      if mayLackMemory(header, frames) { return .outOfMemory(detail: own) }
      let failure = ImageError.undecodable(detail: own)
      return header.isLaterFrame ? .ofVariant(failure) : failure
    } catch {
      return error
    }
  }

  /// Whether an error's text speaks of memory that could not be had, for a thread's stack included. A bound that a library
  /// has on what a header may claim is something else. So is nothing of which there was none (libtiff, of a directory
  /// without entries), and a profile that is read from memory and ends early (Little CMS).
  static func isOfMemory(_ text: String) -> Bool {
    let text = text.lowercased().replacing("read from memory", with: "read")
    return ["memory", "allocat", "creating thread"].contains { text.contains($0) }
      && !text.contains("security limit") && !text.contains("(0 elements")
  }

  private static let mostVectorPixels = 1_000_000.0

  /// Decodes every row of what is opened for so many frames.
  private static func decode(
    _ source: UnsafeRawBufferPointer, _ header: SourceHeader, _ frames: Int
  ) throws(ImageError) {
    // A vector is drawn small: the size that it names has no bound.
    let scale =
      header.format == .svg ? min(1, (mostVectorPixels / header.size.area).squareRoot()) : 1
    let image = try Loader.open(
      source, as: header.format, pages: header.pages(frames: frames), scale: scale,
      failOn: try Loader.decoderFailOn(source, header))
    let rows = try PixelRows(of: image)
    for y in 0..<image.size.height { _ = try rows.row(y) }
  }

  /// Whether a decoder that does not say why it failed may have had too little memory: those of these formats hold an
  /// image whole, three times over at the most.
  private static func mayLackMemory(_ header: SourceHeader, _ frames: Int) -> Bool {
    guard [.heic, .avif, .jxl, .jp2, .webp].contains(header.format), let room = MemoryLeft.bytes
    else {
      return false
    }
    return header.size.pixels * 4 * 3 > room
  }
}
