// KnownTargets: the cache keys of raw request targets that had hits, shared by all event loops.

import Core
import Glibc

/// What a hit needs of a request, for clients of one class: its target is not parsed again.
struct KnownTarget: Sendable {
  let key: CacheKey
  /// The source's file name without its extension; `nil` if a hit from disk needs the request.
  let stem: String?
  /// Whether the response depends on `Accept`.
  let isNegotiated: Bool
  /// When the target's signature expires; `nil` without `exp`. It was verified when it was parsed.
  let expiry: UnixTime?
  /// `HintNeeds.number`.
  let hintNumber: UInt8
}

/// A bounded table from raw request targets, and what clients accept, to cache keys.
///
/// Holds a digest of policy, formats and raw target: 128 bits of SipHash under two secrets of the
/// process (Swift's `Hasher`), so that clients cannot find two targets with one digest. A target
/// that follows client hints has an entry that says so, and one for each set of hints.
///
/// Set-associative like a processor's cache: the digest selects a set of four places. A hit moves
/// its target one place forward and a new target takes the last place, so a rare target does not
/// evict a frequent one. The table grows with its targets.
final class KnownTargets: Sendable {
  /// Two hashes of a raw target, the accepted formats, and the policy it was parsed under.
  struct Digest: Equatable {
    fileprivate let first: Int
    fileprivate let second: Int

    init(
      _ raw: UnsafeRawBufferPointer, accepting formats: AcceptedFormats, under policy: UInt64
    ) {
      var hasher = Hasher()
      hasher.combine(KnownTargets.secrets.0 ^ policy)
      hasher.combine(formats.rawValue)
      hasher.combine(bytes: raw)
      first = hasher.finalize()
      hasher = Hasher()
      hasher.combine(KnownTargets.secrets.1 ^ policy)
      hasher.combine(formats.rawValue)
      hasher.combine(bytes: raw)
      second = hasher.finalize()
    }

    /// Creates the digest of a target for clients that send `hints`.
    init(_ target: Digest, for hints: ClientHints) {
      first = Self.hash(target.first, hints)
      second = Self.hash(target.second, hints)
    }

    private static func hash(_ digest: Int, _ hints: ClientHints) -> Int {
      var hasher = Hasher()
      hasher.combine(digest)
      // Optional values in unspecialized code could allocate.
      hasher.combine(hints.scale ?? 0)
      hasher.combine(hints.width ?? 0)
      hasher.combine(hints.savesData)
      return hasher.finalize()
    }
  }

  /// What is known under a digest.
  enum Entry: Sendable {
    /// What a hit needs.
    case target(KnownTarget)
    /// The target follows hints, which are part of the digest to ask for.
    case hints(HintUse)
  }

  private typealias Place = (digest: Digest, entry: Entry)?

  private struct Shard {
    var places: [Place] = []
    var count = 0
  }

  private static let ways = 4
  private static let shardCount = 16
  /// Keys longer than this, in bytes, are not kept.
  static let longestKey = 512
  private static let secrets = (UInt64.random(in: 0 ... .max), UInt64.random(in: 0 ... .max))

  private let shards: [Lock<Shard>]
  private let placesPerShard: Int

  /// Creates a table of at most `limit` entries of 250 bytes, 900 with the longest key and name.
  init(limit: Int) {
    var sets = 0
    while max(2 * sets, 1) * Self.ways * Self.shardCount <= limit { sets = max(2 * sets, 1) }
    placesPerShard = sets * Self.ways
    shards = (0..<(sets > 0 ? Self.shardCount : 0)).map { _ in Lock(Shard()) }
  }

  var count: Int { shards.reduce(0) { $0 + $1.withLock { $0.count } } }

  /// Returns what is known. Does not allocate.
  func entry(_ digest: Digest) -> Entry? {
    guard !shards.isEmpty else { return nil }
    return shard(of: digest).withLock { shard in
      guard !shard.places.isEmpty else { return nil }
      let first = Self.firstPlace(of: digest, among: shard.places.count)
      for place in first..<first + Self.ways {
        guard let found = shard.places[place], found.digest == digest else { continue }
        if place > first { shard.places.swapAt(place, place - 1) }
        return found.entry
      }
      return nil
    }
  }

  /// Keeps what is known of a target that had a hit.
  func remember(_ entry: Entry, for digest: Digest) {
    if case .target(let target) = entry, target.key.text.utf8.count > Self.longestKey { return }
    guard !shards.isEmpty else { return }
    // What is replaced is released outside the lock, except when the table grows.
    let replaced = shard(of: digest).withLock { shard -> Place in
      // Sets fill unevenly, so the table grows before it is full.
      if shard.count * 2 >= shard.places.count, shard.places.count < placesPerShard {
        grow(&shard)
      }
      return Self.put((digest, entry), into: &shard)
    }
    withExtendedLifetime(replaced) {}
  }

  private func grow(_ shard: inout Shard) {
    let old = shard.places
    shard.places = Array(
      repeating: nil, count: min(max(2 * old.count, 8 * Self.ways), placesPerShard))
    shard.count = 0
    for place in old { if let place { _ = Self.put(place, into: &shard) } }
  }

  private static func put(
    _ new: (digest: Digest, entry: Entry), into shard: inout Shard
  ) -> Place {
    let first = firstPlace(of: new.digest, among: shard.places.count)
    let set = first..<first + ways
    let place =
      set.first { shard.places[$0] == nil || shard.places[$0]?.digest == new.digest }
      ?? set.upperBound - 1
    let old = shard.places[place]
    shard.places[place] = new
    if old == nil { shard.count += 1 }
    return old
  }

  private func shard(of digest: Digest) -> Lock<Shard> {
    shards[digest.second & (Self.shardCount - 1)]
  }

  private static func firstPlace(of digest: Digest, among places: Int) -> Int {
    // A power of two.
    digest.first & (places / ways - 1) * ways
  }
}
