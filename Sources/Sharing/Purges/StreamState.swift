// StreamState: what a machine finds when it connects, and what it does then. Pure.

/// The state of the stream when a machine connects.
struct StreamState: Equatable {
  /// The epoch.
  let epoch: String
  /// The oldest entry.
  let oldest: StreamPosition
  /// The newest entry.
  let newest: StreamPosition
  /// Whether the stream still has its first entry, so nothing was trimmed.
  let isWhole: Bool
  /// Whether the stream has the entry that the machine applied last.
  let hasApplied: Bool

  /// What a machine does before it reads the stream.
  enum Beginning: Equatable {
    /// Applies the entries after this position.
    case read(after: StreamPosition)
    /// Purges everything, because purges may be lost, and continues after this position.
    case purgeEverything(StreamPosition)
    /// The server has lost entries that this machine has applied, or is back in an epoch that this machine has left:
    /// begins a new epoch.
    case renewEpoch
  }

  /// Decides how a machine begins.
  ///
  /// - Parameter applied: what it has applied; `nil` for a machine that is new in the fleet.
  func beginning(for applied: AppliedPosition?) -> Beginning {
    guard let applied else {
      return isWhole ? .read(after: .start) : .purgeEverything(newest)
    }
    // An epoch of before knows nothing of the purges that were made after it, and allows what they cover.
    if applied.left.contains(epoch) { return .renewEpoch }
    guard applied.epoch == epoch else { return .purgeEverything(newest) }
    if applied.position > newest { return .renewEpoch }
    guard applied.position >= oldest else {
      return isWhole ? .read(after: applied.position) : .purgeEverything(newest)
    }
    // Ids are times, so an entry that Redis lost may be followed by later ones.
    return hasApplied ? .read(after: applied.position) : .renewEpoch
  }
}
