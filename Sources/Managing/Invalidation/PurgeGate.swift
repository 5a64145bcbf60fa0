// PurgeGate: keeps a purge and concurrent writes from missing each other.

import Model
import Platform

/// A sharded lock between purges and writers.
///
/// Check-then-store is not atomic. Writers hold a shard of this gate across both; a purge, once
/// published, acquires each shard once. So every earlier store is visible to the purge, and every
/// later check sees the purge.
final class PurgeGate: Sendable {
  private static let count = 16

  /// Sharded by key to reduce contention.
  private let parts = (0..<count).map { _ in Lock(()) }

  /// Runs `work`, which must not block, while holding the shard of `key`.
  func hold<Result>(for key: CacheKey, _ work: () -> Result) -> Result {
    parts[key.storedHash & (Self.count - 1)].withLock { _ in work() }
  }

  /// Acquires each shard once, which waits for the present holders.
  func pass() {
    for part in parts { part.withLock { _ in } }
  }
}
