// CacheKey+Variant: tells whether a key names a variant of a given source.

import Model

extension CacheKey {
  /// Returns whether this key names a variant of `source`: its text, a space, and more. Allocates
  /// nothing, unlike `CacheKey.source`, because it is called for each variant in memory.
  func isVariant(of source: CacheKey) -> Bool {
    let text = text.utf8
    let prefix = source.text.utf8
    // The fast path: most keys have no space where the source's key would end.
    guard source.isSource, text.count > prefix.count,
      text[text.index(text.startIndex, offsetBy: prefix.count)] == UInt8(ascii: " ")
    else { return false }
    return text.starts(with: prefix)
  }
}
