// Mailbox: passes loads and other work to the transfer thread, and replies back.

import Core
import Requesting

/// A queue of work for the transfer thread. Posting never blocks.
final class Mailbox: Sendable {
  /// Runs on the transfer thread. The load that it is about may have ended.
  typealias Command = @Sendable (TransferLoop) -> Void

  private struct State {
    var commands: [Command] = []
    var isClosed = false
    var lastID = 0
  }

  private let state = Lock(State())
  private let multi: MultiHandle

  /// Creates a mailbox.
  ///
  /// - Parameter multi: the handle that commands wake up.
  init(waking multi: MultiHandle) { self.multi = multi }

  /// Returns a unique load id.
  func makeID() -> DownloadQueue.ID {
    state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
  }

  /// Posts a command. Returns `false` if the mailbox is closed and the command will not be read.
  @discardableResult func post(_ command: @escaping Command) -> Bool {
    let isPosted = state.withLock { state in
      if !state.isClosed { state.commands.append(command) }
      return !state.isClosed
    }
    if isPosted { multi.wakeUp() }
    return isPosted
  }

  /// Closes the mailbox; later commands are refused.
  func close() {
    state.withLock { $0.isClosed = true }
    multi.wakeUp()
  }

  /// Returns the commands posted since the last call; with `isClosed` they are the last ones.
  func take() -> (commands: [Command], isClosed: Bool) {
    state.withLock { state in
      defer { state.commands = [] }
      return (state.commands, state.isClosed)
    }
  }
}

/// A load that waits for its result.
struct PendingDownload: Sendable {
  let id: DownloadQueue.ID
  let target: DownloadTarget
  let request: LoadRequest
  let arrived: ContinuousClock.Instant
  let priority: SharedPriority
  let reply: Reply<Result<LoadResult, ImageError>>

  /// The number of requests that wait for the load.
  var waiters: Int { request.priority?.waiters ?? 1 }

  /// Delivers the result. Called exactly once, by the code that removes the load from the loop's
  /// table.
  func answer(_ result: Result<LoadResult, ImageError>) { reply.give(result) }
}

/// A load's priority and clients: they grow on any thread, and are read on the transfer thread.
/// Being shared, a change that arrives before its load is not lost.
final class SharedPriority: Sendable {
  private struct State {
    var value = LoadPriority.low
    var clients: Set<LoadClient> = []
  }

  private let state = Lock(State())

  var value: LoadPriority { state.withLock { $0.value } }
  var clients: Set<LoadClient> { state.withLock { $0.clients } }

  /// Raises the priority; never lowers it.
  func raise(to value: LoadPriority) { state.withLock { $0.value = max($0.value, value) } }

  /// Adds clients that the load is for.
  func add(_ clients: Set<LoadClient>) { state.withLock { $0.clients.formUnion(clients) } }
}

/// A reply from the transfer thread to an awaiting task.
struct Reply<Value: Sendable>: Sendable {
  private let value: Lock<Value?>
  private let continuation: CheckedContinuation<Void, Never>

  /// Delivers the value. Call exactly once.
  func give(_ value: Value) {
    self.value.withLock { $0 = value }
    continuation.resume()
  }

  /// Passes a reply to `ask` and waits for its value. The value goes through a lock, because the
  /// thread sanitizer does not track continuations.
  static func of(_ ask: (Reply<Value>) -> Void) async -> Value? {
    let value = Lock<Value?>(nil)
    await withCheckedContinuation { ask(Reply(value: value, continuation: $0)) }
    return value.withLock { $0.take() }
  }
}

extension Result where Failure == ImageError {
  /// The failure.
  var error: ImageError? {
    if case .failure(let error) = self { error } else { nil }
  }
}
