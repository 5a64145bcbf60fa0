// PurgeGate: keeps apart a purge and what is stored at the same moment.

import Model
import Platform

/// To ask whether something was purged and to store it are two steps, and a whole purge may pass between them: what is
/// stored then would be there after it, and memory's hits ask nobody. So whoever stores takes both steps in one hold of
/// the gate, and a purge that is in the list passes the gate before it looks for what it means. Whoever asked before it
/// has stored by then, and is found; whoever asks later does not store.
final class PurgeGate: Sendable {
  private static let count = 16

  /// By key, so that two threads seldom meet.
  private let parts = (0..<count).map { _ in Lock(()) }

  /// Does `work`, which must not wait, while no purge passes and nobody else holds the gate for this key.
  func hold<Result>(for key: CacheKey, _ work: () -> Result) -> Result {
    parts[key.storedHash & (Self.count - 1)].withLock { _ in work() }
  }

  /// Waits for those who hold it now.
  func pass() {
    for part in parts { part.withLock { _ in } }
  }
}
