// Soundness: whether a source's bytes are whole, told from its structure and its coded data, without a pixel.

import Model

/// The verdict on a source's bytes.
enum Soundness: Equatable {
  /// All pixels are there, as far as the format can tell.
  case whole
  /// The check does not know this kind; its decoder tells.
  case unknown
  /// Pixels are lost or invented; the mildest level of `FailOn` that refuses this, and what was found.
  case damaged(FailOn, String)

  /// Judges a source. Formats without a check are left to their decoders.
  init(of bytes: UnsafeRawBufferPointer, as format: ImageFormat) {
    self =
      switch format {
      case .jpeg: JPEGCheck.soundness(of: bytes)
      case .png: PNGCheck.soundness(of: bytes)
      case .gif: GIFCheck.soundness(of: bytes)
      default: .unknown
      }
  }

  /// Holds a source to what may be damaged.
  ///
  /// - Throws: `ImageError.undecodable`.
  func check(_ failOn: FailOn) throws(ImageError) {
    if case .damaged(let level, let detail) = self, level <= failOn {
      throw .undecodable(detail: detail)
    }
  }
}
