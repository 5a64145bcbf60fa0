// PurgeNumbers: the number of the last purge of each scope, found by what a key can match.

import Model

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
