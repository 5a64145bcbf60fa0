// Soundness: decides whether a source's bytes are intact, and which failures are its fault.

import CVips
import Core
import FastJPEG

/// The verdict on a source's bytes.
enum Soundness: Equatable {
  /// All pixels are present, as far as the format can tell.
  case whole
  /// The check does not support this kind of file; its decoder decides.
  case unknown
  /// Pixels are lost or invented; holds the mildest level of `FailOn` that rejects this, and a
  /// description.
  case damaged(FailOn, String)

  /// Checks a source. Formats without a check are left to their decoders.
  init(of bytes: UnsafeRawBufferPointer, as format: ImageFormat) {
    self = format.codec.soundness(bytes)
  }

  static func ofJPEG(_ bytes: UnsafeRawBufferPointer) -> Soundness {
    switch JPEGCheck.verdict(on: bytes) {
    case .whole: .whole
    case .unknown: .unknown
    case .damaged(let level, let detail): .damaged(level, detail)
    }
  }

  /// Fails if the source has damage that `failOn` rejects.
  ///
  /// - Throws: `ImageError.undecodable`.
  func check(_ failOn: FailOn) throws(ImageError) {
    if case .damaged(let level, let detail) = self, level <= failOn {
      throw .undecodable(detail: detail)
    }
  }

  /// Checks all pixels of a source that is passed through unchanged: the coded data if the format
  /// has a check; otherwise decodes all pixels.
  ///
  /// - Throws: `ImageError.undecodable`.
  static func verify(
    _ source: UnsafeRawBufferPointer, _ header: SourceHeader
  ) throws(ImageError) {
    let soundness = Soundness(of: source, as: header.format)
    try soundness.check(header.failOn)
    guard soundness != .whole else { return }
    try Loader.open(
      source, as: header.format, pages: header.isAnimation ? .all : .first, failOn: header.failOn
    ).computeRows()
  }
}

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
  /// Three similar texts report something else: a library's limit on a size in a header, libtiff's
  /// complaint about a directory without entries, and Little CMS's about a profile in memory that
  /// ends early.
  static func isOfMemory(_ text: String) -> Bool {
    let text = text.lowercased().replacing("read from memory", with: "read")
    return ["memory", "allocat", "creating thread"].contains { text.contains($0) }
      && !text.contains("security limit") && !text.contains("(0 elements")
  }

  /// Decodes every row of the pages opened for `frames` frames.
  private static func decode(
    _ source: UnsafeRawBufferPointer, header: SourceHeader, frames: Int
  ) throws(ImageError) {
    let image = try Loader.open(
      source, as: header.format, pages: header.pages(frames: frames),
      scale: header.scale(atMost: 1_000_000),
      failOn: try Loader.decoderFailOn(source, header: header))
    try image.computeRows()
  }

  /// Returns whether a decoder that reports no cause may have run out of memory. Decoders of these
  /// formats hold the whole image, in up to three copies.
  private static func mayLackMemory(_ header: SourceHeader, frames: Int) -> Bool {
    guard header.format.traits.decoderHoldsImage, let room = MemoryLeft.bytes else { return false }
    return header.size.pixels * 4 * 3 > room
  }
}
