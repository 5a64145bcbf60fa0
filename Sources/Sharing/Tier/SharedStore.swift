// SharedStore: the port to where the shared tier has its entries.

import Platform

/// The answer of a shared store.
enum SharedRead: Sendable {
  /// The bytes of an entry, whole but not checked: the store and all who write to it are untrusted.
  case found(FileRegion)
  /// The store has no such entry.
  case absent
  /// The store is away, too slow or refuses, or the entry is too large, or memory has no room.
  case unavailable
}

/// Entries by name, on another machine. Calls suspend no longer than the store's time-out, and block no thread.
protocol SharedStore: Sendable {
  /// Whether requests are sent. `false` while the store's breaker is open. Never blocks.
  var isReady: Bool { get }
  /// Returns an entry.
  func read(_ name: String) async -> SharedRead
  /// Writes an entry, in place of an older one.
  ///
  /// - Parameters:
  ///   - name: letters, digits, `:`, `/` and `-`.
  ///   - head: the first bytes of the entry.
  ///   - body: the bytes after `head`.
  ///   - lifetime: seconds after which the entry is useless.
  /// - Returns: whether the store has confirmed it.
  func write(_ name: String, head: [UInt8], body: FileRegion?, lifetime: Int) async -> Bool
}
