// LeaseWaiters: what waits on this machine for other machines, and the notices that end the waits.

import Model
import Platform

/// One wait. It ends by a notice, a time-out or a cancellation.
final class LeaseWaiter: Sendable {
  private struct State {
    var notice: LeaseNotice?
    var continuation: CheckedContinuation<Void, Never>?
    /// The last pause whose time has passed: that may be before it has its continuation.
    var ended = 0
    /// The number of the present pause.
    var pause = 0
  }

  private let state = Lock(State())

  /// Notes a notice and ends the present pause.
  func tell(_ notice: LeaseNotice) {
    state.withLock { state in
      state.notice = notice
      return state.continuation.take()
    }?.resume()
  }

  /// Returns the notice, after it has arrived or the time has passed; `nil` without one.
  func notice(within time: Duration) async -> LeaseNotice? {
    let pause = state.withLock { state in
      state.pause += 1
      return state.pause
    }
    let timer = Task { [self] in
      try? await Task.sleep(for: time)
      end(pause)
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let waits = state.withLock { state in
          guard state.notice == nil, state.ended < pause, !Task.isCancelled else { return false }
          state.continuation = continuation
          return true
        }
        if !waits { continuation.resume() }
      }
    } onCancel: {
      end(pause)
    }
    timer.cancel()
    return state.withLock { $0.notice.take() }
  }

  /// Ends a pause, which may not have begun. The timer of an earlier one changes nothing.
  private func end(_ pause: Int) {
    state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard pause == state.pause else { return nil }
      state.ended = pause
      return state.continuation.take()
    }?.resume()
  }
}

/// All waits of this machine. Notices are read only while there are some.
final class LeaseWaiters: Sendable {
  private struct State {
    var waiters: [String: [LeaseWaiter]] = [:]
    var isReading = false
  }

  /// The longest wait for replies: Redis answers within a second if there is no notice.
  private static let timeout = Duration.seconds(3)
  /// The pause after a failure.
  private static let pause = Duration.milliseconds(100)

  private let client: RedisClient
  private let commands: LeaseCommands
  private let state = Lock(State())

  init(client: RedisClient, commands: LeaseCommands) {
    self.client = client
    self.commands = commands
  }

  /// The number of waits.
  var count: Int { state.withLock { $0.waiters.values.reduce(0) { $0 + $1.count } } }

  /// Adds a wait. `remove` has to follow.
  func add(_ digest: String) -> LeaseWaiter {
    let waiter = LeaseWaiter()
    let mustStart = state.withLock { state in
      state.waiters[digest, default: []].append(waiter)
      defer { state.isReading = true }
      return !state.isReading
    }
    // It works for all waits, so it inherits neither priority nor client of this one.
    if mustStart { Task.detached { [self] in await read() } }
    return waiter
  }

  func remove(_ waiter: LeaseWaiter, of digest: String) {
    state.withLock { state in
      state.waiters[digest]?.removeAll { $0 === waiter }
      if state.waiters[digest]?.isEmpty == true { state.waiters[digest] = nil }
    }
  }

  private func read() async {
    while isNeeded() {
      guard
        let replies = try? await client.send(
          commands.readNotices, on: .notices, within: Self.timeout),
        !replies.contains(where: { $0.error != nil })
      else {
        // Without Redis each wait ends by its own poll.
        try? await Task.sleep(for: Self.pause)
        continue
      }
      let notices = commands.notices(in: replies)
      // A server that answers at once, with nothing of use, must not keep the machine busy.
      if notices.isEmpty { try? await Task.sleep(for: Self.pause / 10) }
      for notice in notices {
        let waiting = state.withLock { $0.waiters[notice.digest] ?? [] }
        for waiter in waiting { waiter.tell(notice) }
      }
    }
  }

  private func isNeeded() -> Bool {
    state.withLock { state in
      if state.waiters.isEmpty { state.isReading = false }
      return state.isReading
    }
  }
}
