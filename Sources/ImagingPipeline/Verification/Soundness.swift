// Soundness: decides whether a source's bytes are intact, without decoding pixels.

import FastJPEG
import Model

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
    self =
      switch format {
      case .jpeg:
        switch JPEGCheck.verdict(on: bytes) {
        case .whole: .whole
        case .unknown: .unknown
        case .damaged(let level, let detail): .damaged(level, detail)
        }
      case .png: PNGCheck.soundness(of: bytes)
      case .gif: GIFCheck.soundness(of: bytes)
      default: .unknown
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
}
