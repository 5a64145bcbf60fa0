// EntryDigest: the names of entries on disk, by which those of one URL are neighbours.

import CGLib
import Core

/// The kind of an entry.
enum EntryKind: UInt8, CaseIterable, Sendable {
  case variant = 0
  case source = 1

  init(of key: CacheKey) { self = key.isSource ? .source : .variant }

  /// The name of the folder of this kind in the cache folder.
  var folderName: String { self == .variant ? "v" : "s" }
}

/// The name of an entry: two words made of SHA-256 digests of the parts of its key. Groups of
/// entries are found by their names alone:
///
/// - `high` holds 64 bits of the URL's digest. All entries of a URL have the same `high`, and so
///   the same folder and the same shard of the index.
/// - The upper half of `low` holds 32 bits of the source's digest. All entries of one source of the
///   URL share these bits (see `CacheKey.varied`).
/// - The lower half of `low` holds 31 bits of the digest, for a variant that of the whole key, and
///   one that marks a source.
///
/// Clients choose keys, so they can search for collisions, but the damage is small:
///
/// - Finding a URL with the `high` of a given URL takes 2⁶⁴ attempts. A purge of one URL then
///   removes the entries of both.
/// - Finding a variant with the name of a given variant of the same source takes 2³¹ attempts. Each
///   read of one variant then evicts the other. The file holds the whole key text, which each read
///   compares, so neither is served for the other.
struct EntryDigest: Hashable, Sendable {
  let high: UInt64
  let low: UInt64
}

extension EntryDigest {
  init(of key: CacheKey) {
    var text = key.text
    (high, low) = text.withUTF8 { bytes in
      // GLib supports SHA-256, so this cannot fail. If it did, all keys would share one name, and
      // the key text in the files would still tell them apart.
      guard let checksum = g_checksum_new(G_CHECKSUM_SHA256) else { return (0, 0) }
      defer { g_checksum_free(checksum) }
      let space = key.isSource ? nil : bytes.firstIndex(of: UInt8(ascii: " "))
      let sourceEnd = space ?? bytes.endIndex
      let urlEnd = bytes[..<sourceEnd].firstIndex(of: UInt8(ascii: "#")) ?? sourceEnd
      // Each byte is hashed once: a copy of the checksum yields the digest of a part.
      var words = Self.words(after: bytes[..<urlEnd], checksum, isLast: urlEnd == bytes.endIndex)
      let high = words.first
      if urlEnd < sourceEnd {
        words = Self.words(
          after: bytes[urlEnd..<sourceEnd], checksum, isLast: sourceEnd == bytes.endIndex)
      }
      // Uses the second word, because the first one equals `high` for most sources.
      let source = words.second & Self.sourceMask
      guard sourceEnd < bytes.endIndex else {
        return (high, words.second | Self.kindBit)
      }
      let whole = Self.words(after: bytes[sourceEnd...], checksum, isLast: true)
      return (high, source | whole.second & ~Self.sourceMask & ~Self.kindBit)
    }
  }

  /// The bits of `low` that all entries of a source share.
  static let sourceMask: UInt64 = 0xffff_ffff_0000_0000
  /// The bit of `low` that is set in the names of sources only. The index has one table for both
  /// kinds.
  private static let kindBit: UInt64 = 1

  /// Returns the first two words of the digest after these bytes. If `isLast`, the checksum ends.
  private static func words(
    after bytes: Slice<UnsafeBufferPointer<UInt8>>, _ checksum: OpaquePointer, isLast: Bool
  ) -> (first: UInt64, second: UInt64) {
    let bytes = UnsafeBufferPointer(rebasing: bytes)
    g_checksum_update(checksum, bytes.baseAddress, gssize(bytes.count))
    guard !isLast else { return words(of: checksum) }
    guard let copy = g_checksum_copy(checksum) else { return (0, 0) }
    defer { g_checksum_free(copy) }
    return words(of: copy)
  }

  /// Returns the first two words of a digest. The checksum ends.
  private static func words(of checksum: OpaquePointer) -> (first: UInt64, second: UInt64) {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
      var length = gsize(digest.count)
      g_checksum_get_digest(checksum, digest.baseAddress, &length)
      return (
        UInt64(bigEndian: digest.load(as: UInt64.self)),
        UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self))
      )
    }
  }

  /// Parses a file name. Returns `nil` unless it has 32 lower-case hexadecimal digits.
  init?(hexadecimal name: some StringProtocol) {
    guard name.utf8.count == 32 else { return nil }
    let halves = Array(name.utf8).withUnsafeBytes { digits in
      (UInt64(lowerHexadecimal: digits[..<16]), UInt64(lowerHexadecimal: digits[16...]))
    }
    guard case (let high?, let low?) = halves else { return nil }
    self.init(high: high, low: low)
  }

  /// The file name.
  var hexadecimal: String {
    String(unsafeUninitializedCapacity: 32) { buffer in
      for position in 0..<32 {
        buffer[position] = (position < 16 ? high : low).hexadecimalDigit(at: position % 16)
      }
      return 32
    }
  }

  /// The number of the folder, 0–255, named by the first two digits.
  var folder: Int { Int(high >> 56) }

  // The digest is uniformly distributed, so the half that differs within a folder is enough.
  func hash(into hasher: inout Hasher) { hasher.combine(low) }
}

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
