// ConnectionWatch: what other threads see of a connection: descriptor, client, deadline.

import Platform
import Synchronization

/// A connection as the monitor and the listener see it. Its event loop writes, they read.
final class ConnectionWatch: Sendable {
  /// What of a connection's requests was received.
  enum Phase: UInt8 {
    /// Nothing yet.
    case opened
    /// A part of a header.
    case begun
    /// All of the last request.
    case between
  }

  /// The socket.
  let descriptor: CInt
  private let clientStorage: Lock<IPAddress?>
  /// Monotonic milliseconds; `Int.max` while none of the server's own deadlines applies.
  private let deadlineStorage: Atomic<Int>
  /// Monotonic milliseconds; `Int.max` while the connection is busy.
  private let waitingStorage: Atomic<Int>
  /// Where the connection is among those of its table, which alone uses it, under its lock.
  private let placeStorage = Atomic<Int>(0)
  private let phaseStorage = Atomic<UInt8>(Phase.opened.rawValue)

  /// Creates the watch of a socket opened at `now`, with its first header due by `deadline`.
  init(descriptor: CInt, client: IPAddress?, openedAt now: Int, deadline: Int) {
    self.descriptor = descriptor
    clientStorage = Lock(client)
    deadlineStorage = Atomic(deadline)
    waitingStorage = Atomic(now)
  }

  /// The network of the client; `nil` for one of a unix socket. The connection's table alone
  /// changes it, when a PROXY header names another client.
  var client: IPAddress? {
    get { clientStorage.withLock { $0 } }
    set { clientStorage.withLock { $0 = newValue } }
  }

  /// Where the connection is in the list of its table.
  var place: Int {
    get { placeStorage.load(ordering: .relaxed) }
    set { placeStorage.store(newValue, ordering: .relaxed) }
  }

  /// When the connection is shut down, in monotonic milliseconds.
  var deadline: Int {
    get { deadlineStorage.load(ordering: .relaxed) }
    set { deadlineStorage.store(newValue, ordering: .relaxed) }
  }

  /// Since when the connection waits for a request's header, in monotonic milliseconds; `nil` while
  /// a request is read or answered.
  var waitingSince: Int? {
    let since = waitingStorage.load(ordering: .relaxed)
    return since == .max ? nil : since
  }

  /// What was received when the connection began to wait.
  var phase: Phase { Phase(rawValue: phaseStorage.load(ordering: .relaxed)) ?? .begun }

  /// The connection waits for the header of its next request, or for its rest.
  func wait(since now: Int, _ phase: Phase = .between) {
    phaseStorage.store(phase.rawValue, ordering: .relaxed)
    waitingStorage.store(now, ordering: .relaxed)
  }

  /// The header of a request is complete.
  ///
  /// An exchange, because `claim` on another thread must see it or come before it.
  func begin() { _ = waitingStorage.exchange(.max, ordering: .relaxed) }

  /// Takes a connection that still waits since `since`. A later request is too late.
  func claim(since: Int) -> Bool {
    waitingStorage.compareExchange(expected: since, desired: .max, ordering: .relaxed).exchanged
  }
}
