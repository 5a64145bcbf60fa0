// Mailbox: how loads and what is asked of them reach the transfer thread from any other.

import Platform

/// What the transfer thread is asked for, in order. Posting never waits.
final class Mailbox: Sendable {
  enum Command: Sendable {
    case load(PendingDownload)
    /// Gives up a load; of no effect for one that has ended.
    case cancel(DownloadQueue.ID)
    /// A load's priority was raised; of no effect for one that has ended.
    case raise(DownloadQueue.ID)
    /// A body was held against its origin's digests; of no effect for a load that has ended.
    case verified(DownloadQueue.ID, mismatch: String?)
    case pause
    case resume
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
