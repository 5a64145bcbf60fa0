// Purges: the list of purges that stored entries and loads in progress are checked against.

import Core
import Synchronization

/// The purges that are in force. A purge is dropped when the disk tier has carried it out and no
/// load that began before it can still be in progress.
///
/// The cost of a check does not grow with the number of purges. Of several purges with one scope,
/// only the last is kept.
public final class Purges: PurgeList {
  private struct State {
    var generation = 0
    /// Purges that the disk tier has not carried out, by number.
    var unfinished: [Int: Purge] = [:]
    /// Purges that the disk tier has carried out, with the time, oldest first.
    var finished = Deque<(purge: Purge, at: ContinuousClock.Instant)>()
    /// The numbers of the last purges.
    var numbers: PurgeNumbers
  }

  /// The longest time from the start of a load to its storage. A transfer, the imaging and one
  /// retry after a crashed worker take at most an hour each, the configuration's maximum; queueing
  /// gets another hour.
  static let longestLoad: Duration = .seconds(4 * 3_600)
  /// Maximum number of finished purges kept for loads in progress.
  static let limit = 65_536

  private let state: Lock<State>
  /// The number of the last purge; 0 for none. A newer entry needs no look-up, and most entries are
  /// newer.
  private let newest = Atomic<Int>(0)

  /// Creates an empty list.
  ///
  /// - Parameter filter: holds the rules that assign tags.
  public init(filter: CacheKeyFilter = CacheKeyFilter()) {
    state = Lock(State(numbers: PurgeNumbers(filter: filter)))
  }

  /// Replaces the rules that assign tags.
  public func apply(_ filter: CacheKeyFilter) { state.withLock { $0.numbers.apply(filter) } }

  /// See `PurgeList`.
  public var generation: Int { state.withLock { $0.generation } }

  /// See `PurgeList`.
  public func covers(_ key: CacheKey, generation: Int) -> Bool {
    guard newest.load(ordering: .acquiring) > generation else { return false }
    return state.withLock { $0.numbers.last(of: key) } > generation
  }

  /// See `PurgeList`.
  public func add(_ scope: PurgeScope) -> Purge {
    state.withLock { state in
      let purge = Purge(number: max(state.generation + 1, WallClock.microseconds), scope: scope)
      insert(purge, into: &state)
      return purge
    }
  }

  /// Adds unfinished purges of an earlier run. Later purges get numbers above `last`, even if the
  /// clock was set back.
  func restore(_ purges: [Purge], last: Int) {
    state.withLock { state in
      for purge in purges { insert(purge, into: &state) }
      state.generation = max(state.generation, last)
    }
  }

  /// Records that the disk tier has carried out a purge. Does nothing if a later purge of the same
  /// scope has replaced it.
  func finish(_ purge: Purge) {
    // The dropped purges are released outside the lock.
    let dropped = state.withLock { state -> [Purge] in
      guard state.unfinished.removeValue(forKey: purge.number) != nil else { return [] }
      state.finished.append((purge, .now))
      return drop(from: &state, at: .now)
    }
    withExtendedLifetime(dropped) {}
  }

  /// Drops the purges that no load in progress at `now` can need.
  func dropOld(at now: ContinuousClock.Instant = .now) {
    let dropped = state.withLock { drop(from: &$0, at: now) }
    withExtendedLifetime(dropped) {}
  }

  /// The unfinished purges, in the order they were added.
  var unfinished: [Purge] {
    state.withLock { Array($0.unfinished.values) }.sorted { $0.number < $1.number }
  }

  /// The number of unfinished purges.
  var unfinishedCount: Int { state.withLock { $0.unfinished.count } }

  /// Adds a purge. It replaces an unfinished purge of the same scope, so that repeated purges do
  /// not grow the list or the journal.
  private func insert(_ purge: Purge, into state: inout State) {
    let earlier = state.numbers[purge.scope]
    let last = max(earlier, purge.number)
    state.generation = max(state.generation, last)
    state.unfinished[earlier] = nil
    state.unfinished[last] = Purge(number: last, scope: purge.scope)
    state.numbers[purge.scope] = last
    newest.store(state.generation, ordering: .releasing)
  }

  private func drop(from state: inout State, at now: ContinuousClock.Instant) -> [Purge] {
    var dropped: [Purge] = []
    while let (purge, end) = state.finished.first,
      state.finished.count > Self.limit || end.duration(to: now) >= Self.longestLoad
    {
      _ = state.finished.popFirst()
      dropped.append(purge)
      if state.numbers[purge.scope] == purge.number { state.numbers[purge.scope] = 0 }
    }
    if state.numbers.isEmpty { newest.store(0, ordering: .releasing) }
    return dropped
  }
}

/// The number of the last purge of each scope.
///
/// A key's purges are found without a walk over all, and without an allocation: URLs and prefixes
/// by the beginnings of the key, hosts by the beginnings of the host read from its end, tags by the
/// rule of the host. The result agrees with `PurgeScope.matches`.
struct PurgeNumbers {
  private var urls = Beginnings()
  private var hosts = Beginnings()
  private var byTag: [String: Int] = [:]
  private var everything = 0

  /// The tags of each rule, and the rules of each tag.
  private let tags: [[String]]
  private let rulesByTag: [String: [Int]]
  /// Where a rule is among those for hosts and those for buckets, counted from the end: the first
  /// has the greatest number.
  private var rulesOfHosts = Beginnings()
  private var rulesOfBuckets = Beginnings()
  /// The number of the last purge of any tag of each rule.
  private var byRule: [Int]

  /// - Parameter filter: holds the rules that assign tags.
  init(filter: CacheKeyFilter) {
    tags = filter.rules.map(\.tags)
    byRule = tags.map { _ in 0 }
    var rulesByTag: [String: [Int]] = [:]
    for (index, rule) in filter.rules.enumerated().reversed() {
      for tag in Set(rule.tags) { rulesByTag[tag, default: []].append(index) }
      let host = Self.bytes(of: rule.host)
      if rule.store == nil {
        rulesOfHosts[host] = tags.count - index
      } else {
        rulesOfBuckets[host] = tags.count - index
      }
    }
    self.rulesByTag = rulesByTag
  }

  /// Replaces the rules that assign tags.
  mutating func apply(_ filter: CacheKeyFilter) {
    var next = PurgeNumbers(filter: filter)
    next.urls = urls
    next.hosts = hosts
    next.everything = everything
    for (tag, number) in byTag { next.set(tag, to: number) }
    self = next
  }

  var isEmpty: Bool { urls.isEmpty && hosts.isEmpty && byTag.isEmpty && everything == 0 }

  /// The number of the last purge of a scope; 0 if the scope was not purged.
  subscript(scope: PurgeScope) -> Int {
    get {
      switch scope {
      case .url(let url): urls[Array(url.text.utf8) + [Beginnings.end]]
      case .prefix(let url): urls[Array(url.text.utf8)]
      case .host(let host): hosts[Self.bytes(of: host)]
      case .tag(let tag): byTag[tag] ?? 0
      case .everything: everything
      }
    }
    set {
      switch scope {
      case .url(let url): urls[Array(url.text.utf8) + [Beginnings.end]] = newValue
      case .prefix(let url): urls[Array(url.text.utf8)] = newValue
      case .host(let host): hosts[Self.bytes(of: host)] = newValue
      case .tag(let tag): set(tag, to: newValue)
      case .everything: everything = newValue
      }
    }
  }

  /// Returns the number of the last purge of a key; 0 for none.
  func last(of key: CacheKey) -> Int {
    var last = everything
    if !urls.isEmpty {
      var text = key.text
      let number = text.withUTF8 { text in
        urls.greatest(of: text.prefix { $0 != UInt8(ascii: " ") && $0 != UInt8(ascii: "#") })
      }
      last = max(last, number)
    }
    guard !hosts.isEmpty || !byTag.isEmpty, var host = key.hostBytes else { return last }
    if host.last == UInt8(ascii: ".") { host = host.dropLast() }
    if !hosts.isEmpty { last = max(last, hosts.greatest(of: host.reversed())) }
    if !byTag.isEmpty {
      let rules = key.text.utf8.first == UInt8(ascii: "s") ? rulesOfBuckets : rulesOfHosts
      let place = rules.greatest(of: host.reversed())
      if place > 0 { last = max(last, byRule[byRule.count - place]) }
    }
    return last
  }

  private mutating func set(_ tag: String, to number: Int) {
    let old = byTag[tag]
    byTag[tag] = number == 0 ? nil : number
    for rule in rulesByTag[tag] ?? [] {
      if number >= byRule[rule] {
        byRule[rule] = number
      } else if byRule[rule] == old {
        byRule[rule] = tags[rule].reduce(0) { max($0, byTag[$1] ?? 0) }
      }
    }
  }

  /// The normalized pattern from its end: a whole text for one host, a beginning for those below.
  private static func bytes(of host: HostPattern) -> [UInt8] {
    let text = host.description.utf8
    guard text.first == UInt8(ascii: "*") else { return text.reversed() + [Beginnings.end] }
    return text.dropFirst().reversed()
  }
}

/// A number for each of some beginnings of texts, and for some whole texts. A look-up allocates
/// nothing, and takes as long as the text is, however long the list.
struct Beginnings {
  /// Ends a whole text. No text contains it.
  static let end = UInt8(ascii: " ")

  // FNV-1a, because it gives the hash of each beginning of a text in one walk. Its collisions are
  // easily made, so what is found is compared.
  private var byHash: [UInt64: [(bytes: [UInt8], number: Int)]] = [:]
  /// A bit for each hash of the list, and few others, because most look-ups find nothing.
  private var bits: [UInt64] = []
  /// Hashes that were removed since the bits were set, whose bits are left.
  private var removed = 0

  var isEmpty: Bool { byHash.isEmpty }

  /// The number of a beginning, or with `end` behind it of a whole text; 0 for none.
  subscript(bytes: [UInt8]) -> Int {
    get { byHash[Self.hash(bytes)]?.first { $0.bytes == bytes }?.number ?? 0 }
    set {
      let hash = Self.hash(bytes)
      var alike = byHash[hash] ?? []
      alike.removeAll { $0.bytes == bytes }
      if newValue != 0 { alike.append((bytes, newValue)) }
      byHash[hash] = alike.isEmpty ? nil : alike
      if newValue == 0 { removed += 1 }
      if byHash.count > 4 * bits.count {
        setBits(words: max(2 * bits.count, 16))
      } else if removed > byHash.count {
        setBits(words: bits.count)
      } else if newValue != 0 {
        mark(hash)
      }
    }
  }

  /// Returns the greatest number of the beginnings of a text; 0 for none.
  func greatest(of text: some Sequence<UInt8>) -> Int {
    guard !isEmpty else { return 0 }
    var greatest = 0
    var length = 0
    var hash = Self.seed
    func look(isWhole: Bool) {
      let (word, bit) = place(of: hash)
      guard bits[word] & bit != 0, let alike = byHash[hash] else { return }
      for (bytes, number) in alike
      where number > greatest && bytes.count == length && isWhole == (bytes.last == Self.end)
        && text.starts(with: bytes.dropLast(isWhole ? 1 : 0))
      {
        greatest = number
      }
    }
    look(isWhole: false)
    for byte in text {
      hash = Self.hash(hash, byte)
      length += 1
      look(isWhole: false)
    }
    hash = Self.hash(hash, Self.end)
    length += 1
    look(isWhole: true)
    return greatest
  }

  private mutating func setBits(words: Int) {
    removed = 0
    bits = Array(repeating: 0, count: words)
    for hash in byHash.keys { mark(hash) }
  }

  private mutating func mark(_ hash: UInt64) {
    let (word, bit) = place(of: hash)
    bits[word] |= bit
  }

  /// The bit of a hash. The number of words is a power of two.
  private func place(of hash: UInt64) -> (word: Int, bit: UInt64) {
    (Int(hash >> 6) & (bits.count - 1), 1 << (hash & 63))
  }

  private static let seed: UInt64 = 0xcbf2_9ce4_8422_2325

  private static func hash(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
    (hash ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  private static func hash(_ bytes: [UInt8]) -> UInt64 { bytes.reduce(seed, hash) }
}
