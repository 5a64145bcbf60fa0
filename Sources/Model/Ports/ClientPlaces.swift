// ClientPlaces: the running transfers or jobs of each client, and its share of them.

/// Counts clients' running transfers, or imaging jobs, which never stall. No side effects.
///
/// A transfer is active while it is not stalled. Active transfers of a client above its share are
/// its surplus.
public struct ClientPlaces: Sendable {
  private struct Count {
    var active = 0
    var stalled = 0
  }

  /// The share of one client, at least 1.
  private var share: Int
  /// Clients with running transfers.
  private var counts: [LoadClient: Count] = [:]
  /// The surplus of all clients.
  public private(set) var surplus = 0

  /// Creates counts of zero.
  public init(share: Int) { self.share = max(share, 1) }

  /// Changes the share of one client.
  public mutating func setShare(_ share: Int) {
    self.share = max(share, 1)
    surplus = counts.reduce(0) { $0 + surplus(of: $1.key, active: $1.value.active) }
  }

  /// Whether a further transfer of the client is within its share.
  public func isWithinShare(_ client: LoadClient) -> Bool { active(client) < share(of: client) }

  /// Orders clients of one priority: the first to start is the one with the fewest active
  /// transfers. Clients without a share come first and the background comes last.
  public func turn(of client: LoadClient) -> Int {
    switch client {
    case .network: active(client)
    case .unlimited: 0
    case .background: .max
    }
  }

  /// Orders stalled transfers: the first to end is one of the client with the most of them. The
  /// background comes first and clients without a share come last.
  public func burden(of client: LoadClient) -> Int {
    switch client {
    case .network: counts[client]?.stalled ?? 0
    case .unlimited: 0
    case .background: .max
    }
  }

  /// Counts a transfer that starts.
  public mutating func start(_ client: LoadClient) { change(client, active: 1, stalled: 0) }

  /// Counts a transfer that ends.
  public mutating func end(_ client: LoadClient, isStalled: Bool) {
    change(client, active: isStalled ? 0 : -1, stalled: isStalled ? -1 : 0)
  }

  /// Counts a transfer as stalled.
  public mutating func stall(_ client: LoadClient) { change(client, active: -1, stalled: 1) }

  /// Counts a stalled transfer as active again.
  public mutating func recover(_ client: LoadClient) { change(client, active: 1, stalled: -1) }

  private mutating func change(_ client: LoadClient, active: Int, stalled: Int) {
    var count = counts[client] ?? Count()
    surplus -= surplus(of: client, active: count.active)
    count.active += active
    count.stalled += stalled
    surplus += surplus(of: client, active: count.active)
    counts[client] = count.active + count.stalled > 0 ? count : nil
  }

  private func active(_ client: LoadClient) -> Int { counts[client]?.active ?? 0 }

  private func surplus(of client: LoadClient, active: Int) -> Int {
    max(active - share(of: client), 0)
  }

  private func share(of client: LoadClient) -> Int {
    switch client {
    case .network: share
    case .unlimited: .max
    case .background: 0
    }
  }
}
