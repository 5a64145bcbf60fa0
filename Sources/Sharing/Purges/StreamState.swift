// StreamState: what a machine finds when it connects, what it has applied, and what it does then. Pure.

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

/// What a machine has applied, and the epochs that it has left.
struct AppliedPosition: Hashable, Sendable {
  /// The most epochs that are remembered after they were left.
  static let limit = 16

  /// The epoch of the stream; empty if it is unknown.
  let epoch: String
  /// The last applied entry.
  private(set) var position: StreamPosition
  /// Earlier epochs, the last one first. One of them comes back if Redis' data is set back, without the purges that were
  /// made meanwhile.
  private(set) var left: [String] = []

  /// A machine that may have missed any purge: it purges everything before it reads the stream.
  static let unknown = AppliedPosition(epoch: "", position: .start)

  init(epoch: String, position: StreamPosition) {
    self.epoch = epoch
    self.position = position
  }

  /// The position after this one.
  func moved(to position: StreamPosition, epoch: String) -> AppliedPosition {
    var next = AppliedPosition(epoch: epoch, position: position)
    let isSame = epoch == self.epoch || self.epoch.isEmpty
    next.left = Array(((isSame ? [] : [self.epoch]) + left).prefix(Self.limit))
    return next
  }

  /// The position as text: a line for epoch and entry, and one for each epoch that was left.
  var text: String { (["\(epoch) \(position)"] + left).map { $0 + "\n" }.joined() }

  /// Parses `text`; `nil` for anything else.
  init?(_ text: String) {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    let parts = lines[0].split(separator: " ", omittingEmptySubsequences: false)
    guard lines.count >= 2, lines.last?.isEmpty == true, parts.count == 2,
      let position = StreamPosition(String(parts[1]))
    else { return nil }
    let left = lines.dropFirst().dropLast()
    guard left.count <= Self.limit, left.allSatisfy({ !$0.isEmpty && !$0.contains(" ") }) else {
      return nil
    }
    self.init(epoch: String(parts[0]), position: position)
    self.left = left.map { String($0) }
  }
}
