// PurgeNumbers: the number of the last purge of each scope, found by what a key can match.

import Model

/// The number of the last purge of each scope.
///
/// A key's purges are found without a walk over all: prefixes by the lengths in use, hosts by the
/// ends of the key's host, the others by name. The result agrees with `PurgeScope.matches`.
struct PurgeNumbers {
  private var byURL: [String: Int] = [:]
  private var byPrefix: [UInt64: [String: Int]] = [:]
  /// How many prefixes have each length.
  private var prefixesByLength: [Int] = []
  private var byHost: [String: Int] = [:]
  private var byTag: [String: Int] = [:]
  private var everything = 0

  var hasTags: Bool { !byTag.isEmpty }

  var isEmpty: Bool {
    byURL.isEmpty && byPrefix.isEmpty && byHost.isEmpty && byTag.isEmpty && everything == 0
  }

  /// The number of the last purge of a scope; 0 if the scope was not purged.
  subscript(scope: PurgeScope) -> Int {
    get {
      switch scope {
      case .url(let url): byURL[url.text] ?? 0
      case .prefix(let url): byPrefix[Self.hash(url.text)]?[url.text] ?? 0
      case .host(let host): byHost[host.description] ?? 0
      case .tag(let tag): byTag[tag] ?? 0
      case .everything: everything
      }
    }
    set {
      let number = newValue == 0 ? nil : newValue
      switch scope {
      case .url(let url): byURL[url.text] = number
      case .prefix(let url): setPrefix(url.text, number)
      case .host(let host): byHost[host.description] = number
      case .tag(let tag): byTag[tag] = number
      case .everything: everything = newValue
      }
    }
  }

  /// Returns the number of the last purge of a key but for those of tags; 0 for none.
  func last(of key: CacheKey) -> Int {
    var last = everything
    if !byURL.isEmpty { last = max(last, byURL[key.url] ?? 0) }
    if !byPrefix.isEmpty { last = max(last, lastOfPrefixes(key.text)) }
    if !byHost.isEmpty, let host = key.host { last = max(last, lastOfHosts(host)) }
    return last
  }

  /// Returns the number of the last purge of any of the tags; 0 for none.
  func last(ofTags tags: [String]) -> Int { tags.lazy.compactMap { byTag[$0] }.max() ?? 0 }

  private mutating func setPrefix(_ text: String, _ number: Int?) {
    let hash = Self.hash(text)
    let length = text.utf8.count
    var bucket = byPrefix[hash] ?? [:]
    let change = (number == nil ? 0 : 1) - (bucket[text] == nil ? 0 : 1)
    bucket[text] = number
    byPrefix[hash] = bucket.isEmpty ? nil : bucket
    if prefixesByLength.count <= length {
      prefixesByLength += Array(repeating: 0, count: length + 1 - prefixesByLength.count)
    }
    prefixesByLength[length] += change
  }

  private func lastOfPrefixes(_ text: String) -> Int {
    var last = 0
    var hash = Self.seed
    var length = 0
    for byte in text.utf8 {
      hash = Self.hash(hash, byte)
      length += 1
      guard length < prefixesByLength.count else { break }
      guard prefixesByLength[length] > 0, let bucket = byPrefix[hash] else { continue }
      for (prefix, number) in bucket where text.utf8.starts(with: prefix.utf8) {
        last = max(last, number)
      }
    }
    return last
  }

  private func lastOfHosts(_ host: String) -> Int {
    let host = HostPattern.normalized(host)
    var last = max(byHost["*"] ?? 0, byHost[host] ?? 0)
    for dot in host.utf8.indices where host.utf8[dot] == UInt8(ascii: ".") {
      last = max(last, byHost["*" + host[dot...]] ?? 0)
    }
    return last
  }

  // FNV-1a, because it gives the hash of each beginning of a text in one walk.
  private static let seed: UInt64 = 0xcbf2_9ce4_8422_2325

  private static func hash(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
    (hash ^ UInt64(byte)) &* 0x100_0000_01b3
  }

  private static func hash(_ text: String) -> UInt64 { text.utf8.reduce(seed, hash) }
}
