// Mailbox: how loads and cancellations reach the transfer thread from any other.

import Model
import Platform

/// One call of `Downloader.load` that waits for its answer.
struct Load: Sendable {
  let id: DownloadQueue.ID
  let target: Target
  let arrived: ContinuousClock.Instant
  private let outcome: Lock<Result<Download, ImageError>?>
  private let continuation: CheckedContinuation<Void, Never>

  /// - Parameter outcome: where the answer is put before `continuation` is resumed. It goes by way of a lock, since the
  ///   thread sanitizer does not see into continuations.
  init(
    id: DownloadQueue.ID, target: Target, arrived: ContinuousClock.Instant,
    outcome: Lock<Result<Download, ImageError>?>, continuation: CheckedContinuation<Void, Never>
  ) {
    (self.id, self.target, self.arrived) = (id, target, arrived)
    (self.outcome, self.continuation) = (outcome, continuation)
  }

  /// Exactly once, by whoever takes the load out of the loop's table.
  func answer(_ result: Result<Download, ImageError>) {
    outcome.withLock { $0 = result }
    continuation.resume()
  }
}

/// What the transfer thread is asked for, in order. Posting never waits.
final class Mailbox: Sendable {
  enum Command: Sendable {
    case load(Load)
    /// Gives up a load; of no effect for one that has ended.
    case cancel(DownloadQueue.ID)
  }

  private struct State {
    var commands: [Command] = []
    var isClosed = false
    var lastID = 0
  }

  private let state = Lock(State())
  private let multi: MultiHandle

  /// - Parameter multi: what is woken up by a command.
  init(waking multi: MultiHandle) { self.multi = multi }

  /// A number that no other load has.
  func makeID() -> DownloadQueue.ID {
    state.withLock { state in
      state.lastID += 1
      return state.lastID
    }
  }

  /// `false` when the mailbox is closed: the command will never be read.
  @discardableResult func post(_ command: Command) -> Bool {
    let isPosted = state.withLock { state in
      if !state.isClosed { state.commands.append(command) }
      return !state.isClosed
    }
    if isPosted { multi.wakeUp() }
    return isPosted
  }

  /// Takes no more commands.
  func close() {
    state.withLock { $0.isClosed = true }
    multi.wakeUp()
  }

  /// All commands posted since the last time; with `isClosed` they are the last ones.
  func take() -> (commands: [Command], isClosed: Bool) {
    state.withLock { state in
      defer { state.commands = [] }
      return (state.commands, state.isClosed)
    }
  }
}
