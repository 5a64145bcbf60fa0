// EntryGroup: entries of one URL or one source, recognised by their names alone.

import Model

/// All entries of a URL, or all variants of one source.
struct EntryGroup {
  private let high: UInt64
  /// The upper half of `low`; `nil` for every source of the URL.
  private let source: UInt64?
  /// The kinds of the entries.
  let kinds: [EntryKind]

  /// Returns the group of all variants of a source.
  static func variants(of source: CacheKey) -> EntryGroup {
    let digest = EntryDigest(of: source)
    return EntryGroup(
      high: digest.high, source: digest.low & EntryDigest.sourceMask, kinds: [.variant])
  }

  /// Returns the group of all sources of a URL and all their variants.
  static func all(of url: SourceURL) -> EntryGroup {
    let digest = EntryDigest(of: CacheKey(source: url))
    return EntryGroup(high: digest.high, source: nil, kinds: EntryKind.allCases)
  }

  /// A digest in the folder of the group.
  var place: EntryDigest { EntryDigest(high: high, low: 0) }

  /// Returns whether the group contains an entry.
  func contains(_ digest: EntryDigest, kind: EntryKind) -> Bool {
    digest.high == high && (source == nil || digest.low & EntryDigest.sourceMask == source)
      && kinds.contains(kind)
  }
}

/// The file name of an entry and its kind, which selects the folder.
struct EntryName: Hashable {
  let digest: EntryDigest
  let kind: EntryKind
}
