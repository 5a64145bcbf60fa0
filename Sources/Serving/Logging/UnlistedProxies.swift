// UnlistedProxies: tells the operator about proxies that the configuration does not list.

import CMicrohttpd
import Platform
import Synchronization
import Telemetry

/// Notes peers that name clients without being trusted. All their clients count as one.
///
/// Any client can send such a field, so there is a line at most once an hour.
final class UnlistedProxies: Sendable {
  /// Milliseconds between two lines.
  private static let interval = 3_600_000

  /// When the next line is due, in monotonic milliseconds.
  private let dueAt = Atomic<Int>(.min)

  /// Whether a line is due. Reads one number. For an hour after a line, it is not.
  var isDue: Bool { dueAt.load(ordering: .relaxed) <= Clock.coarseMilliseconds() }

  /// Logs a peer whose field names clients, if a line is due.
  func noteField(_ name: String, from peer: IPAddress?, log: Log) {
    guard takeTurn() else { return }
    log.warning(
      "a peer that server.trusted_proxies does not list names its clients: they count as one",
      fields: [
        "client": .client(peer), "header": .string(name),
      ])
  }

  /// Logs a peer whose PROXY header is refused, if a line is due; `key` is the key that decides.
  func noteProxyHeader(from peer: IPAddress?, key: String, log: Log) {
    guard takeTurn() else { return }
    log.warning(
      "a peer sends a PROXY header that \(key) does not permit; it is refused",
      fields: ["client": .client(peer)])
  }

  /// Whether a line is due. The next one is due after the interval.
  private func takeTurn() -> Bool {
    let now = Clock.coarseMilliseconds()
    let due = dueAt.load(ordering: .relaxed)
    return due <= now
      && dueAt.compareExchange(
        expected: due, desired: now + Self.interval, ordering: .relaxed
      ).exchanged
  }
}

extension RequestContext {
  /// Logs a forwarding field of a peer that is not one of `server.trusted_proxies`.
  func noteUnlistedProxy() {
    let peer = client.peer?.unmapped
    guard handler.unlistedProxies.isDue, !client.policy.trustedProxies.trusts(peer) else { return }
    for name: StaticString in ["X-Forwarded-For", "Forwarded"]
    where RequestHandler.field(name, on: connection) != nil {
      handler.unlistedProxies.noteField("\(name)", from: peer, log: handler.log)
    }
  }
}
