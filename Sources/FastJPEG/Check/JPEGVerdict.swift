// JPEGVerdict: the result of checking a JPEG's bytes.

import Model

/// The verdict on a JPEG's entropy-coded data.
public enum JPEGVerdict: Equatable, Sendable {
  /// All pixels are present, as far as the codes can tell.
  case whole
  /// The check does not support this kind of file; libjpeg decides.
  case unknown
  /// Pixels are lost or invented; holds the mildest level of `FailOn` that rejects this, and a
  /// description.
  case damaged(FailOn, String)
}
