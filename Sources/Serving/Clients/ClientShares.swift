// ClientShares: each client's share of the server's work.

import Model
import Platform

/// The accounts of a listener's clients, shared by its event loops.
final class ClientShares: Sendable {
  private let clients: Lock<CountedClients>
  private let figures: ServerFigures
  private let accounts: Lock<ClientAccounts>

  /// Creates empty accounts.
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

/// The share of a request that waits for an image.
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
