// KnownTargets: the cache keys of raw request targets that had hits, shared by all event loops.

import Glibc
import Model
import Platform

/// What a hit needs of a request whose response depends on nothing but target and `Accept`.
struct PlainTarget: Sendable {
  /// The cache key.
  let key: CacheKey
  /// The source's file name without its extension, as `Content-Disposition` has it.
  let stem: String
  /// Whether the response depends on `Accept`.
  let isNegotiated: Bool
}

/// A bounded table from raw request targets and accepted formats to cache keys. `RequestMemo` has
/// whole parsed targets, some thousand. This table has more, with what a hit needs.
///
/// Holds a digest of policy, formats and raw target: 128 bits of SipHash under two secrets of the
/// process (Swift's `Hasher`), so that clients cannot find two targets with one digest.
///
/// Set-associative as `RequestMemo`: a hit moves its target one place forward, and a new one
/// replaces the last of its set. The table grows with its targets.
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
  }

  private typealias Place = (digest: Digest, target: PlainTarget)?

  private struct Shard {
    var places: [Place] = []
    var count = 0
  }

  private static let ways = 4
  private static let shardCount = 16
  /// Keys and file names longer than this, in bytes, are not kept.
  static let longestKey = 192
  private static let secrets = (
    SystemRandomNumberGenerator.word(), SystemRandomNumberGenerator.word()
  )

  private let shards: [Lock<Shard>]
  private let placesPerShard: Int

  /// Creates a table of at most `limit` targets of 200 bytes, 500 with the longest key and name.
  init(limit: Int) {
    var sets = 0
    while max(2 * sets, 1) * Self.ways * Self.shardCount <= limit { sets = max(2 * sets, 1) }
    placesPerShard = sets * Self.ways
    shards = (0..<(sets > 0 ? Self.shardCount : 0)).map { _ in Lock(Shard()) }
  }

  /// The number of kept targets.
  var count: Int { shards.reduce(0) { $0 + $1.withLock { $0.count } } }

  /// Returns a target that had a hit. Does not allocate.
  func target(_ digest: Digest) -> PlainTarget? {
    guard !shards.isEmpty else { return nil }
    return shard(of: digest).withLock { shard in
      guard !shard.places.isEmpty else { return nil }
      let first = Self.firstPlace(of: digest, among: shard.places.count)
      for place in first..<first + Self.ways {
        guard let found = shard.places[place], found.digest == digest else { continue }
        if place > first { shard.places.swapAt(place, place - 1) }
        return found.target
      }
      return nil
    }
  }

  /// Keeps a target that had a hit.
  func remember(_ target: PlainTarget, for digest: Digest) {
    guard !shards.isEmpty, target.key.text.utf8.count <= Self.longestKey,
      target.stem.utf8.count <= Self.longestKey
    else { return }
    // What is replaced is released outside the lock, except when the table grows.
    let replaced = shard(of: digest).withLock { shard -> Place in
      // Sets fill unevenly, so the table grows before it is full.
      if shard.count * 2 >= shard.places.count, shard.places.count < placesPerShard {
        grow(&shard)
      }
      return Self.put((digest, target), into: &shard)
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
    _ new: (digest: Digest, target: PlainTarget), into shard: inout Shard
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

extension SystemRandomNumberGenerator {
  fileprivate static func word() -> UInt64 { UInt64.random(in: 0 ... .max) }
}
