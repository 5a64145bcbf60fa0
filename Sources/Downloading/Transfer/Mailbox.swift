// Mailbox: passes loads and commands from other threads to the transfer thread.

import Model
import Platform

/// A queue of commands to the transfer thread. Posting never blocks.
final class Mailbox: Sendable {
  enum Command: Sendable {
    case load(PendingDownload)
    /// Cancels a load; no effect if it has ended.
    case cancel(DownloadQueue.ID)
    /// Reports a raised priority; no effect if the load has ended.
    case raise(DownloadQueue.ID)
    /// Reports another client of a load; no effect if the load no longer waits.
    case join(DownloadQueue.ID, LoadClient)
    /// Reports the result of a digest verification; no effect if the load has ended.
    case verified(DownloadQueue.ID, mismatch: String?)
    /// Reports that memory for bodies was returned.
    case memoryReturned
    /// Reports the answer of a look-up.
    case resolved(String, NameAnswer)
    /// Asks for the state of a target's host; `nil` while stopping.
    case inspect(DownloadQueue.ID, DownloadTarget, Reply<LoadOutlook?>)
    /// Replaces the settings of loads that start from now on.
    case apply(DownloaderConfiguration)
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
  @discardableResult func post(_ command: Command) -> Bool {
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
