// RequestMemo: the request targets that an event loop has already parsed.

import Glibc

/// A bounded table from raw request targets to parsed ones. Each event loop has its own, so a
/// lookup takes no lock.
///
/// Set-associative like a processor's cache: the hash selects a set of four slots. A hit moves its
/// target one slot forward and a new target takes the last slot, so a rare target does not evict a
/// frequent one. Colliding targets from an attacker only cause four targets to be parsed again.
final class RequestMemo {
  private static let ways = 4
  /// Targets longer than this are parsed each time.
  static let longestTarget = 2_048
  /// Approximate cost of a stored target in addition to its bytes: objects, canonical URL and key.
  private static let overhead = 1_024
  /// Maximum number of targets evicted for one: enough for the longest in place of the shortest.
  static let releasedAtOnce = 16
  /// Maximum number of sets searched for targets to evict.
  private static let searchedAtOnce = 256

  private var places: [RequestTarget?]
  private let mask: Int
  private let limit: Int
  private var bytes = 0
  /// The next set to evict from when bytes are short.
  private var hand = 0

  /// Creates a table of at most about `limit` bytes.
  init(limit: Int) {
    var sets = 1
    while sets * 2 * Self.ways * (Self.overhead + 256) <= limit { sets *= 2 }
    mask = sets - 1
    self.limit = limit
    places = Array(repeating: nil, count: sets * Self.ways)
  }

  /// Returns an already parsed target. Does not allocate.
  func target(_ raw: UnsafeRawBufferPointer, hash: UInt64) -> RequestTarget? {
    let first = (Int(truncatingIfNeeded: hash) & mask) * Self.ways
    for place in first..<first + Self.ways {
      guard let target = places[place], target.hash == hash,
        target.raw.withUnsafeBytes({ $0.isEqual(to: raw) })
      else {
        continue
      }
      if place > first { places.swapAt(place, place - 1) }
      return target
    }
    return nil
  }

  /// Stores a target if its request is valid.
  func remember(_ target: RequestTarget) {
    guard target.raw.count <= Self.longestTarget, target.endpoint != nil else { return }
    if case .failure = target.request { return }
    let first = (Int(truncatingIfNeeded: target.hash) & mask) * Self.ways
    let place =
      (first..<first + Self.ways).first { places[$0] == nil } ?? first + Self.ways - 1
    let change = cost(target) - (places[place].map(cost) ?? 0)
    guard makesRoom(for: change, keeping: first / Self.ways) else { return }
    bytes += change
    places[place] = target
  }

  /// Makes room for `change` bytes and returns whether there is room. Evicts the last target of
  /// other sets, round robin. Evicts only a few per call, because the event loop waits; if that is
  /// not enough, the target is not stored.
  private func makesRoom(for change: Int, keeping own: Int) -> Bool {
    var released = 0
    for _ in 0..<Self.searchedAtOnce
    where bytes + change > limit && released < Self.releasedAtOnce {
      let set = hand
      hand = (hand + 1) & mask
      guard set != own,
        let last = (set * Self.ways..<(set + 1) * Self.ways).last(where: { places[$0] != nil })
      else { continue }
      bytes -= places[last].map(cost) ?? 0
      places[last] = nil
      released += 1
    }
    return bytes + change <= limit
  }

  /// Returns the approximate cost in bytes. A negotiated target has one more key per class of
  /// clients; the estimate assumes three, and as many for clients that save data. A target with
  /// `auto` may have `HintedKeys.limit` more.
  private func cost(_ target: RequestTarget) -> Int {
    let classes = target.isNegotiated ? 4 : 1
    let keys =
      switch target.hintUse {
      case nil: classes
      case let use? where !use.needs.hasAuto: 2 * classes
      default: classes + HintedKeys.limit
      }
    return target.raw.count * (keys + 2) + Self.overhead
  }

  /// Hashes eight bytes at a time with a per-process secret. Need not resist attacks, see the
  /// type's description.
  static func hash(_ raw: UnsafeRawBufferPointer) -> UInt64 {
    var hash = secret ^ UInt64(truncatingIfNeeded: raw.count)
    var position = 0
    while position + 8 <= raw.count {
      hash = mix(hash, with: raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      position += 8
    }
    var rest: UInt64 = 0
    while position < raw.count {
      rest = rest << 8 | UInt64(raw[position])
      position += 1
    }
    return mix(hash, with: rest)
  }

  private static func mix(_ hash: UInt64, with word: UInt64) -> UInt64 {
    let product = (hash ^ word).multipliedFullWidth(by: 0x9e37_79b9_7f4a_7c15)
    return product.high ^ product.low
  }

  private static let secret = UInt64.random(in: 1...UInt64.max)
}

extension UnsafeRawBufferPointer {
  /// Whether both buffers hold the same bytes and are not empty.
  func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count, let start = baseAddress, let otherStart = other.baseAddress else {
      return false
    }
    return memcmp(start, otherStart, count) == 0
  }
}
