// ConnectionRefusal: answers a new connection that is closed because its client has too many.

import Core
import Glibc

/// Sends 429 on refused connections before they are closed. Never waits; silent in a flood.
final class ConnectionRefusal: Sendable {
  /// The error that the client gets.
  static let error = ImageError.rateLimited(by: .connections, retryAfter: 1)
  /// Responses per second, and at once. Further connections are closed without one.
  static let rule = TokenBucket.Rule(burst: 100, rate: 100)
  /// Bytes that are read of a request: closing with unread input sends RST before the response.
  private static let maximumRead = 16 << 10

  private let budget = Lock(TokenBucket(rule, at: Clock.coarseMilliseconds()))

  /// Sends as much of the response as budget and socket buffer hold. The caller closes the socket.
  func answer(_ accepted: EventLoop.Accepted, by handler: RequestHandler) {
    let now = Clock.coarseMilliseconds()
    let isDue = budget.withLock { budget in
      budget.fill(Self.rule, at: now)
      guard budget.wait(for: 1, Self.rule) == nil else { return false }
      budget.take(1, Self.rule)
      return true
    }
    guard isDue else { return }
    let id = RequestID()
    let text = handler.refusal(of: Self.error, id: id)
    // Before the client can see the response.
    handler.figures.statuses.add("\(Self.error.status)")
    handler.figures.errors.add(Self.error.code)
    let flags = CInt(MSG_NOSIGNAL) | CInt(MSG_DONTWAIT)
    let sent = send(accepted.socket, text, text.count, flags)
    shutdown(accepted.socket, CInt(SHUT_WR))
    withUnsafeTemporaryAllocation(byteCount: Self.maximumRead, alignment: 1) { buffer in
      _ = recvfrom(accepted.socket, buffer.baseAddress, buffer.count, CInt(MSG_DONTWAIT), nil, nil)
    }
    handler.log.info(
      "connection refused",
      fields: [
        "status": .int(Self.error.status), "bytes": .int(max(sent, 0)),
        "error": .string(Self.error.code), "detail": .string(Self.error.explainedMessage),
        "client": .client(accepted.peer),
        "request_id": .string(id.description),
      ])
  }
}
