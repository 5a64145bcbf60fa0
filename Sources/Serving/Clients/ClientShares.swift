// ClientShares: each client's share of the server's work, and what it has used of it.

import Core

/// The accounts of a listener's clients, shared by its event loops.
final class ClientShares: Sendable {
  private let clients: Lock<CountedClients>
  private let figures: ServerFigures
  private let accounts: Lock<ClientAccounts>

  init(_ budgets: ClientBudgets, clients: CountedClients, figures: ServerFigures) {
    self.clients = Lock(clients)
    self.figures = figures
    accounts = Lock(ClientAccounts(budgets))
  }

  /// Replaces the budgets, and which clients have them. What clients have used of them stays.
  func set(_ budgets: ClientBudgets, clients: CountedClients) {
    self.clients.withLock { $0 = clients }
    accounts.withLock { $0.budgets = budgets }
  }

  /// Counts a request of a client.
  ///
  /// - Throws: `rateLimited`.
  func count(_ client: NamedClient, at now: Int) throws(ImageError) {
    guard let client = clients.withLock({ $0 }).network(of: client) else { return }
    try refuse(accounts.withLock { $0.count(client, at: now) })
  }

  /// Begins a request that waits for an image. Returns its share, which must be ended; `nil` for a
  /// client without limits.
  ///
  /// - Throws: `rateLimited`.
  func begin(_ client: NamedClient, at now: Int) throws(ImageError) -> ClientShare? {
    guard let client = clients.withLock({ $0 }).network(of: client) else { return nil }
    try refuse(accounts.withLock { $0.begin(client, at: now) })
    return ClientShare(network: client, shares: self)
  }

  private func refuse(_ error: ImageError?) throws(ImageError) {
    guard let error else { return }
    if case .rateLimited(let limit, _) = error { figures.rateLimited.add(limit.rawValue) }
    throw error
  }

  fileprivate func change(_ change: (inout ClientAccounts) -> Void) {
    accounts.withLock { change(&$0) }
  }
}

struct ClientShare: ImagingAccount {
  fileprivate let network: IPAddress
  fileprivate let shares: ClientShares

  /// Whose share of downloads its loads take.
  var client: LoadClient { .network(network) }

  /// Ends the request. Called once.
  func end() { shares.change { $0.end(network) } }

  /// Charges imaging time, also after the request has ended.
  func charge(_ time: Duration) {
    let seconds = time / .seconds(1)
    shares.change { $0.charge(network, seconds: seconds, at: Clock.coarseMilliseconds()) }
  }
}

extension RequestHandler {
  /// Returns the client, which may be behind trusted proxies. Reads the header only if it is.
  func named(_ client: Connection, on connection: OpaquePointer) -> NamedClient {
    let peer = client.peer?.unmapped
    guard client.policy.trustedProxies.trusts(peer) else { return NamedClient(address: peer) }
    return named(client, LoggedHeader(on: connection))
  }

  /// Returns why a request of the client is refused; `nil` if it may be answered. Operators are not
  /// counted: their tokens are. Neither are routine checks of health and figures: they may come
  /// through the same address as clients, and figures are computed at most a few times a second.
  func excess(of client: Connection, on connection: OpaquePointer) -> ImageError? {
    // A known target is that of an image, and need not be parsed.
    if client.method.isSafe { recognize(client, on: connection) }
    let endpoint = client.known == nil ? client.target?.endpoint : nil
    guard endpoint?.access != .operators, endpoint?.isRoutine != true else { return nil }
    do throws(ImageError) {
      try shares.count(named(client, on: connection), at: Clock.coarseMilliseconds())
      return nil
    } catch {
      return error
    }
  }
}

/// How much work one client may cause.
struct ClientBudgets: Hashable, Sendable {
  /// Requests that wait for an image at once.
  var activeRequests = Int.max
  /// Seconds of imaging; `nil` for no limit.
  var imagingTime: TokenBucket.Rule?
  /// Requests; `nil` for no limit.
  var requests: TokenBucket.Rule?
}

/// What the clients use, in tables of limited size. Without sockets and clocks.
struct ClientAccounts {
  /// Clients whose budgets are remembered; a further one evicts the least recently used.
  static let maximumClients = 16_384
  /// Seconds that a client with too many waiting requests is told to wait.
  private static let pause = 1
  /// Seconds of imaging that must be left for a further request.
  private static let leastImagingTime = 0.001

  /// What each client may use.
  var budgets: ClientBudgets
  /// Has only clients with waiting requests, so `server.active_requests` bounds it.
  private var active: [IPAddress: Int] = [:]
  private var imaging = BoundedTable<IPAddress, TokenBucket>(limit: maximumClients)
  private var requests = BoundedTable<IPAddress, TokenBucket>(limit: maximumClients)

  init(_ budgets: ClientBudgets) { self.budgets = budgets }

  /// The number of clients that are remembered, in the largest table.
  var clientCount: Int { max(active.count, imaging.count, requests.count) }

  /// Counts a request; `nil` if the client may send it. `now` is in monotonic milliseconds.
  mutating func count(_ client: IPAddress, at now: Int) -> ImageError? {
    guard let rule = budgets.requests else { return nil }
    var bucket = requests[client] ?? TokenBucket(rule, at: now)
    bucket.fill(rule, at: now)
    let seconds = bucket.wait(for: 1, rule)
    if seconds == nil { bucket.take(1, rule) }
    requests.setNewest(bucket, for: client)
    return seconds.map { .rateLimited(by: .requests, retryAfter: $0) }
  }

  /// Begins a request that waits for an image; `nil` beyond the client's share. `end` follows.
  mutating func begin(_ client: IPAddress, at now: Int) -> ImageError? {
    if let rule = budgets.imagingTime, var bucket = imaging[client] {
      bucket.fill(rule, at: now)
      if let seconds = bucket.wait(for: Self.leastImagingTime, rule) {
        return .rateLimited(by: .imagingTime, retryAfter: seconds)
      }
    }
    let count = active[client] ?? 0
    guard count < budgets.activeRequests else {
      return .rateLimited(by: .activeRequests, retryAfter: Self.pause)
    }
    active[client] = count + 1
    return nil
  }

  /// Ends a request that was begun.
  mutating func end(_ client: IPAddress) {
    let count = active[client] ?? 0
    active[client] = count > 1 ? count - 1 : nil
  }

  /// Charges the time that imaging workers spent.
  mutating func charge(_ client: IPAddress, seconds: Double, at now: Int) {
    guard let rule = budgets.imagingTime, seconds > 0 else { return }
    var bucket = imaging[client] ?? TokenBucket(rule, at: now)
    bucket.fill(rule, at: now)
    bucket.take(seconds, rule)
    imaging.setNewest(bucket, for: client)
  }
}

/// A budget of tokens. It refills at a constant rate to a limit, and may be overdrawn by it.
struct TokenBucket: Hashable, Sendable {
  struct Rule: Hashable, Sendable {
    /// The most tokens that the budget holds.
    let burst: Double
    /// Tokens that are added per second.
    let rate: Double
  }

  private var level: Double
  private var filledAt: Int

  /// Creates a full budget.
  ///
  /// - Parameter now: monotonic milliseconds.
  init(_ rule: Rule, at now: Int) {
    level = rule.burst
    filledAt = now
  }

  /// Adds the tokens of the time since the last call.
  mutating func fill(_ rule: Rule, at now: Int) {
    level = min(level + Double(max(now - filledAt, 0)) / 1_000 * rule.rate, rule.burst)
    filledAt = now
  }

  /// Takes tokens, even if there are fewer.
  mutating func take(_ tokens: Double, _ rule: Rule) { level = max(level - tokens, -rule.burst) }

  /// Returns the seconds until there are `tokens`, at least 1; `nil` if there are.
  func wait(for tokens: Double, _ rule: Rule) -> Int? {
    level >= tokens ? nil : max(Int(((tokens - level) / rule.rate).rounded(.up)), 1)
  }
}

extension IPAddress {
  /// What counts as one client: an IPv4 address as it is, and the /64 of an IPv6 address, which is
  /// usually one subscriber's.
  var clientNetwork: IPAddress {
    switch unmapped {
    case .v6(let high, _): .v6(high: high, low: 0)
    case let other: other
    }
  }
}

/// Which clients have a share of what the server can do at once.
///
/// Trusted proxies have none, because each speaks for many clients. The machine itself has none: a
/// proxy, a health check or a job of the operator.
struct CountedClients: Sendable {
  let proxies: TrustedProxies
  /// Whether clients of the machine itself have a share; for tests.
  var includesLoopback = false

  /// Returns the network that a client's share belongs to; `nil` without a share. Disputed clients
  /// of a proxy share that of its address, so that no field lets a client out of its limits.
  func network(of client: NamedClient) -> IPAddress? {
    client.isDisputed
      ? (client.address ?? .v4(0)).clientNetwork : network(of: client.address)
  }

  /// Does the same for an address that no proxy has named.
  func network(of address: IPAddress?) -> IPAddress? {
    guard let address = address?.unmapped, !proxies.trusts(address),
      includesLoopback || !address.isLoopback
    else { return nil }
    return address.clientNetwork
  }
}
