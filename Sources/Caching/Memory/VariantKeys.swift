// VariantKeys: whose variant a key names, told from the two keys alone.

import Model

extension CacheKey {
  /// Whether this names a variant of what `source` names: its text, a space, and more. Allocates nothing, unlike
  /// `CacheKey.source`, since it is asked of each variant in memory.
  func isVariant(of source: CacheKey) -> Bool {
    let (text, prefix) = (text.utf8, source.text.utf8)
    // Most keys end here: what stands where the source's would end is seldom a space.
    guard source.isSource, text.count > prefix.count,
      text[text.index(text.startIndex, offsetBy: prefix.count)] == UInt8(ascii: " ")
    else { return false }
    return text.starts(with: prefix)
  }
}
