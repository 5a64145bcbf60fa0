// AppliedPosition: how far a machine has applied the purge stream.

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
