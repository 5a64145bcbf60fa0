// RefusedAttempts: counts wrong tokens by the network that they come from.

import Platform

/// Wrong tokens of the last minute by client network, in a bounded table. Pure.
///
/// After `limit` wrong tokens a network is refused until its minute, from the first, ends.
struct RefusedAttempts {
  /// Wrong tokens that a network may send in a minute.
  static let limit = 10
  /// Milliseconds in which they are counted.
  static let window = 60_000
  /// Networks that are remembered; a further one evicts the one whose minute began first.
  static let maximumNetworks = 4_096

  private struct Count {
    let since: Int
    var number: Int
  }

  private var counts = BoundedTable<IPAddress?, Count>(limit: maximumNetworks)

  /// Creates an empty table.
  init() {}

  /// The number of remembered networks.
  var networkCount: Int { counts.count }

  /// Returns the seconds until a client may try again, at least 1; `nil` if it may try now.
  ///
  /// - Parameter now: monotonic milliseconds.
  func wait(of client: IPAddress?, at now: Int) -> Int? {
    guard let count = counts[client?.clientNetwork], count.number >= Self.limit else {
      return nil
    }
    let rest = count.since + Self.window - now
    return rest > 0 ? (rest + 999) / 1_000 : nil
  }

  /// Counts a wrong token.
  mutating func add(from client: IPAddress?, at now: Int) {
    let network = client?.clientNetwork
    if let count = counts[network], now - count.since < Self.window {
      counts[network] = Count(since: count.since, number: count.number + 1)
    } else {
      counts.setNewest(Count(since: now, number: 1), for: network)
    }
  }
}
