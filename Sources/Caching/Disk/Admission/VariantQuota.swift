// VariantQuota: bounds the number of free-form variants that one source has on disk.

import Platform

/// The free-form variants on disk, by source, each source's in the order in which they were stored.
///
/// Bounded: of the 4,096 sources that stored a variant last, at most `limit` names of four bytes
/// each. With the default limit this is 2.5 MB, because arrays grow by doubling. A source that is
/// not listed any more, as after a start, begins with none.
struct VariantQuota {
  /// Maximum number of sources.
  static let maximumSources = 4_096

  private let limit: Int
  /// The lower half of `EntryDigest.low` of each variant; a group's digest is its key.
  private var sources = BoundedTable<EntryDigest, [UInt32]>(limit: maximumSources)

  /// - Parameter limit: maximum number of variants of a source, at least 1.
  init(limit: Int) { self.limit = max(limit, 1) }

  /// The number of listed sources.
  var count: Int { sources.count }

  /// Adds a variant that was stored. Returns the one that gives way: the source's variant that was
  /// stored longest ago, if there is one too many.
  mutating func note(_ digest: EntryDigest) -> EntryDigest? {
    let source = digest.ofSource
    let name = UInt32(truncatingIfNeeded: digest.low)
    var names = sources.removeValue(forKey: source) ?? []
    if let known = names.firstIndex(of: name) { names.remove(at: known) }
    names.append(name)
    let oldest = names.count > limit ? names.removeFirst() : nil
    sources[source] = names
    return oldest.map { EntryDigest(high: source.high, low: source.low | UInt64($0)) }
  }

  /// Removes a variant, which was stored again for a request that is not free-form.
  mutating func forget(_ digest: EntryDigest) {
    let name = UInt32(truncatingIfNeeded: digest.low)
    guard let place = sources[digest.ofSource]?.firstIndex(of: name) else { return }
    sources[digest.ofSource]?.remove(at: place)
  }
}

extension EntryDigest {
  /// The bits that all entries of a source share.
  fileprivate var ofSource: EntryDigest { EntryDigest(high: high, low: low & Self.sourceMask) }
}
