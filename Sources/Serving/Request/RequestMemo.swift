// RequestMemo: the request targets one worker has already parsed.

import Glibc

/// A bounded table from raw request target to its meaning. Each worker has its own, so looking up takes no lock.
///
/// Set-associative like a processor's cache: a target can only be in the four places its hash names. A hit moves one
/// place to the front, a new target takes the last place, so a rare one never pushes out a frequent one, and a
/// stranger who finds colliding targets only makes four of them be parsed again.
final class RequestMemo {
  private static let ways = 4
  /// Targets longer than this are parsed each time.
  static let longestTarget = 2_048
  /// What a remembered target costs beside its bytes, about: objects, the canonical URL, the key.
  private static let overhead = 1_024
  /// Most targets that one more pushes out: enough for the longest in place of the shortest.
  static let releasedAtOnce = 16
  /// Most sets that are looked at for them.
  private static let searchedAtOnce = 256

  private var places: [RequestTarget?]
  private let mask: Int
  private let limit: Int
  private var bytes = 0
  /// The set that gives a place next when bytes are short.
  private var hand = 0

  /// A table that keeps at most about `limit` bytes.
  init(limit: Int) {
    var sets = 1
    while sets * 2 * Self.ways * (Self.overhead + 256) <= limit { sets *= 2 }
    (mask, self.limit) = (sets - 1, limit)
    places = Array(repeating: nil, count: sets * Self.ways)
  }

  /// The meaning of a target parsed earlier. Allocates nothing.
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

  /// Remembers a target that can be answered; others are not worth a place.
  func remember(_ target: RequestTarget) {
    guard target.raw.count <= Self.longestTarget, target.route != nil else { return }
    if case .failure = target.request { return }
    let first = (Int(truncatingIfNeeded: target.hash) & mask) * Self.ways
    let place =
      (first..<first + Self.ways).first { places[$0] == nil } ?? first + Self.ways - 1
    let change = cost(target) - (places[place].map(cost) ?? 0)
    guard makesRoom(for: change, keeping: first / Self.ways) else { return }
    bytes += change
    places[place] = target
  }

  /// Whether there is room for so many bytes more. Long targets fill the bytes before the places: then other sets give
  /// their last target each, one set after the other and few at a time, since an event loop waits for it. Where that is
  /// not enough, the target is remembered another time.
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

  /// A negotiated target has a key more for each class of clients: for three, which are more than most have.
  private func cost(_ target: RequestTarget) -> Int {
    target.raw.count * (target.isNegotiated ? 6 : 3) + Self.overhead
  }

  /// Mixes eight bytes at a time with a secret of this process. It need not withstand attack: see above.
  static func hash(_ raw: UnsafeRawBufferPointer) -> UInt64 {
    var hash = secret ^ UInt64(truncatingIfNeeded: raw.count)
    var position = 0
    while position + 8 <= raw.count {
      hash = mix(hash, raw.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      position += 8
    }
    var rest: UInt64 = 0
    while position < raw.count {
      rest = rest << 8 | UInt64(raw[position])
      position += 1
    }
    return mix(hash, rest)
  }

  private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word).multipliedFullWidth(by: 0x9e37_79b9_7f4a_7c15)
    return product.high ^ product.low
  }

  private static let secret = UInt64.random(in: 1...UInt64.max)
}

extension UnsafeRawBufferPointer {
  /// Whether both hold the same bytes, and any at all.
  func isEqual(to other: UnsafeRawBufferPointer) -> Bool {
    guard count == other.count, let start = baseAddress, let otherStart = other.baseAddress else {
      return false
    }
    return memcmp(start, otherStart, count) == 0
  }
}
