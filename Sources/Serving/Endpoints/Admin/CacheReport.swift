// CacheReport: the JSON of a cache look-up.

import Model

/// The JSON report of where a response is cached.
struct CacheReport: Encodable {
  private struct Entry: Encodable {
    let bytes: Int
    let age: Int
    let ttl: Int

    init(_ entry: CacheEntryInfo, at now: UnixTime) {
      bytes = entry.bytes
      age = entry.freshness.age(at: now)
      ttl = entry.freshness.lifetime - age
    }
  }

  private enum CodingKeys: CodingKey {
    case memory, disk, source, failed
  }

  private let memory: Entry?
  private let disk: Entry?
  private let source: Entry?
  private let failed: FailedURL?

  /// Reports a look-up.
  ///
  /// - Parameters:
  ///   - lookup: the entries that were found.
  ///   - failed: the remembered failure of the URL; `nil` if there is none.
  ///   - now: the time at which ages are taken.
  init(_ lookup: CacheLookup, failed: FailedURL?, now: UnixTime) {
    memory = lookup.memory.map { Entry($0, at: now) }
    disk = lookup.disk.map { Entry($0, at: now) }
    source = lookup.source.map { Entry($0, at: now) }
    self.failed = failed
  }

  /// `Cache-Status` (RFC 9211) and `Age` of the entry a request would hit first; empty without an
  /// entry.
  var fields: [ResponseField] {
    let places = [("memory", memory), ("disk", disk), ("source", source)]
    let found = places.compactMap { name, entry in entry.map { (name, $0) } }
    guard let (_, first) = found.first else { return [] }
    let names = found.map(\.0).joined(separator: " ")
    return [
      ResponseField(
        name: "Cache-Status", value: "pictor; hit; ttl=\(first.ttl); detail=\"\(names)\""),
      ResponseField(name: "Age", value: "\(first.age)"),
    ]
  }

  /// Encodes missing entries as null.
  func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(memory, forKey: .memory)
    try members.encode(disk, forKey: .disk)
    try members.encode(source, forKey: .source)
    try members.encode(failed, forKey: .failed)
  }
}
