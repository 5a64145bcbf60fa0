// RedisThread: the thread of the Redis client.

import Model
import Platform
import Telemetry

/// A thread that waits for all connections at once, and for requests of other threads.
final class RedisThread: Sendable {
  private enum Message: Sendable {
    case send(RedisRequest, line: Int)
    case resolved(Result<[RedisSocket], RedisError>, line: Int)
  }

  private struct State {
    var messages: [Message] = []
    var isStopped = false
  }

  private let state = Lock(State())
  private let wake: WakeSignal
  private let thread = Lock<OwnThread?>(nil)

  /// Creates what the thread is woken with. `start` starts it.
  init() throws(SystemError) { wake = try WakeSignal() }

  /// Starts the thread, which connects at once.
  func start(
    _ configuration: RedisConfiguration, lines: [RedisLine], counters: RedisCounters, log: Log
  ) throws(SystemError) {
    let started = try OwnThread(name: "pictor-redis", rank: .work) { [self] in
      let connections = lines.enumerated().map { index, line in
        RedisConnection(configuration, line: line, counters: counters, log: log) {
          [owner = self] place throws(SystemError) in
          try OwnThread.start(name: "pictor-names", rank: .work) {
            let result = Result { () throws(RedisError) in
              try RedisSocket.all(of: place, numeric: false)
            }
            _ = owner.post(.resolved(result, line: index))
          }
        }
      }
      run(connections)
    }
    thread.withLock { $0 = started }
  }

  /// Passes a request to a connection. Returns `false` if the thread has ended.
  func send(_ request: RedisRequest, line: Int) -> Bool { post(.send(request, line: line)) }

  /// Ends the connections and the thread. Requests in progress fail. Blocks until the thread has ended.
  func stop() {
    state.withLock { $0.isStopped = true }
    wake.set()
    thread.withLock { $0.take() }?.join()
  }

  private func post(_ message: Message) -> Bool {
    let isPosted = state.withLock { state in
      if !state.isStopped { state.messages.append(message) }
      return !state.isStopped
    }
    if isPosted { wake.set() }
    return isPosted
  }

  private func run(_ connections: [RedisConnection]) {
    while true {
      let (messages, isStopped) = state.withLock { state in
        defer { state.messages = [] }
        return (state.messages, state.isStopped)
      }
      for message in messages {
        switch message {
        case .send(let request, let line): connections[line].send(request)
        case .resolved(let result, let line): connections[line].resolved(result)
        }
      }
      if isStopped { break }
      let now = ContinuousClock.now
      for connection in connections { connection.advance(now: now) }
      var poll = Poll([(wake.descriptor, .readable)] + connections.map(\.interest))
      poll.wait(until: connections.compactMap(\.deadline).min())
      if !poll.events(of: 0).isEmpty { wake.reset() }
      for (index, connection) in connections.enumerated() {
        let events = poll.events(of: index + 1)
        if !events.isEmpty { connection.handle(events) }
      }
    }
    for connection in connections { connection.stop() }
  }
}
