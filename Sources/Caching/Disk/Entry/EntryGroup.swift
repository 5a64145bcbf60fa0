// EntryGroup: entries that belong together and are told from others by their names alone.

import Model

/// All entries of a URL, or all variants of one source.
struct EntryGroup {
  private let high: UInt64
  /// The upper half of `low`; `nil`: any source's.
  private let source: UInt64?
  /// What they are.
  let kinds: [EntryKind]

  /// Every variant of a source.
  static func variants(of source: CacheKey) -> EntryGroup {
    let digest = EntryDigest(of: source)
    return EntryGroup(
      high: digest.high, source: digest.low & EntryDigest.sourceMask, kinds: [.variant])
  }

  /// Every source of a URL, and all their variants.
  static func all(of url: SourceURL) -> EntryGroup {
    let digest = EntryDigest(of: CacheKey(source: url))
    return EntryGroup(high: digest.high, source: nil, kinds: EntryKind.allCases)
  }

  /// A digest in the folder where they are.
  var place: EntryDigest { EntryDigest(high: high, low: 0) }

  /// Whether an entry is one of them.
  func contains(_ digest: EntryDigest, _ kind: EntryKind) -> Bool {
    digest.high == high && (source == nil || digest.low & EntryDigest.sourceMask == source)
      && kinds.contains(kind)
  }
}

/// What an entry's file is called, and below which folder.
struct EntryName: Hashable {
  let digest: EntryDigest
  let kind: EntryKind
}
