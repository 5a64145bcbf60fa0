// RiskyFormats: the formats whose decoders have the most faults, after which workers are replaced early.

import Model
import Platform

/// Formats with large or seldom tested decoders. A fault in one of them stays with few sources if workers that have
/// decoded such sources are replaced early.
enum RiskyFormats {
  /// Returns whether a file is in such a format, or in an unknown one. Reads a few bytes, which may block.
  static func contain(_ file: FileRegion) -> Bool {
    SourceHead.format(of: file).map(\.traits.isRisky) ?? true
  }
}
