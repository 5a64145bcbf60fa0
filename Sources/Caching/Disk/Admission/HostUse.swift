// HostUse: the bytes of sources on disk by host, each host below a limit.

/// The bytes of the sources of each host, used and reserved by writes in progress.
///
/// A table of fixed size: 128 KiB. The names of sources tell their hosts (`EntryDigest.host`), so it is
/// rebuilt at a start without opening files. Two hosts share a place, and its limit, with a probability
/// of one in 16,384.
struct HostUse {
  /// The number of places.
  static let places = 1 << 14

  /// Maximum bytes of one host.
  let limit: Int
  private var bytes = [Int](repeating: 0, count: places)
  /// Hosts for which a write found no room since the last clean.
  private var short: Set<Int> = []

  init(limit: Int) { self.limit = limit }

  /// The bytes of a host.
  subscript(host: Int) -> Int { bytes[host] }

  /// Reserves bytes for a host. Returns `false` if there is no room until others of its sources are
  /// removed.
  mutating func reserve(_ amount: Int, of host: Int) -> Bool {
    guard bytes[host] <= limit - amount else {
      short.insert(host)
      return false
    }
    bytes[host] += amount
    return true
  }

  /// Adds to the bytes of a host; negative amounts release some.
  mutating func add(_ amount: Int, of host: Int) { bytes[host] += amount }

  /// Whether a clean is due for a host, before its writes must be refused.
  func isNearlyFull(_ host: Int) -> Bool { bytes[host] > limit - limit / 16 }

  /// Returns the bytes to free, by host, for each host that is nearly full or had no room since the last
  /// call.
  ///
  /// - Parameter fraction: the part of its limit that a host keeps.
  mutating func takeExcess(leaving fraction: Double) -> [Int: Int] {
    defer { short = [] }
    let kept = Int(Double(limit) * fraction)
    var excess: [Int: Int] = [:]
    for host in bytes.indices where isNearlyFull(host) || short.contains(host) {
      if bytes[host] > kept { excess[host] = bytes[host] - kept }
    }
    return excess
  }
}
