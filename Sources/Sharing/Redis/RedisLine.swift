// RedisLine: what callers share with the thread about one connection.

import Platform
import Synchronization

/// The callers' side of a connection.
final class RedisLine: Sendable {
  /// The name, for the log.
  let name: String
  /// Whether the breaker is closed. Callers of an open one fail without a command.
  let isReady = Atomic<Bool>(false)
  /// Called on the client's thread after each greeting. Must not block.
  let onReady = Lock<(@Sendable () -> Void)?>(nil)
  /// Whether requests wait for its commands.
  let isCounted: Bool
  private let waitingBytes = Atomic<Int>(0)
  private let limit: Int

  init(name: String, isCounted: Bool, limit: Int) {
    self.name = name
    self.isCounted = isCounted
    self.limit = limit
  }

  /// Bytes of commands that wait for their replies.
  var waiting: Int { waitingBytes.load(ordering: .relaxed) }

  /// Takes room for a request. Returns `false` without room.
  func admit(_ count: Int) -> Bool {
    let used = waitingBytes.wrappingAdd(count, ordering: .relaxed).newValue
    guard used <= limit else {
      waitingBytes.wrappingSubtract(count, ordering: .relaxed)
      return false
    }
    return true
  }

  /// Ends an admitted request.
  func finish(_ request: RedisRequest, _ outcome: RedisRequest.Outcome) {
    waitingBytes.wrappingSubtract(request.bytes.count, ordering: .relaxed)
    request.finish(outcome)
  }
}
