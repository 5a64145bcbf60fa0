// UnlistedProxies: tells the operator about proxies that the configuration does not list.

import CMicrohttpd
import Core
import Synchronization

/// Logs peers that name clients without being trusted, at most once an hour: all their clients
/// count as one.
final class UnlistedProxies: Sendable {
  private static let interval = 3_600_000
  /// When the next line is due, in monotonic milliseconds.
  private let dueAt = Atomic<Int>(.min)

  /// Logs the peer of a request with a forwarding field, if a line is due.
  func note(_ context: RequestContext) {
    let now = Clock.coarseMilliseconds()
    let due = dueAt.load(ordering: .relaxed)
    let peer = context.client.peer?.unmapped
    guard due <= now, !context.policy.trustedProxies.trusts(peer) else { return }
    for name: StaticString in ["X-Forwarded-For", "Forwarded"]
    where RequestHandler.field(name, on: context.connection) != nil
      && dueAt.compareExchange(expected: due, desired: now + Self.interval, ordering: .relaxed)
        .exchanged
    {
      context.handler.log.warning(
        "a peer that server.trusted_proxies does not list names its clients: they count as one",
        fields: ["client": .client(peer), "header": .string("\(name)")])
    }
  }
}
