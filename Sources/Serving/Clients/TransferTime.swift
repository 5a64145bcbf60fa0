// TransferTime: how long a client may take to read or send a body.

/// The time limit for a body by its length. A value, so that a hit reads no setting twice.
struct TransferTime: Hashable, Sendable {
  /// Milliseconds that every client has.
  let least: Int
  /// Milliseconds over which the rate is averaged.
  let window: Int
  /// Bytes per second, at least; 0 for no rate.
  let rate: Int

  /// Returns the time for a body in milliseconds: `least`, or the length at the minimum rate.
  func milliseconds(for bytes: Int) -> Int {
    rate > 0 ? max(least, window + bytes * 1_000 / rate) : least
  }
}
