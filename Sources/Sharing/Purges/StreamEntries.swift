// StreamEntries: entries of the purge stream, read from untrusted replies.

import Model

/// An entry of the purge stream.
struct StreamEntry: Equatable {
  enum Content: Equatable {
    /// The beginning of a stream, with its epoch.
    case epoch(String)
    /// A purge, and the machine that made it.
    case purge(PurgeScope, machine: String, number: Int)
    /// Fields of another version, or damage. What it purges is unknown.
    case unknown
  }

  let position: StreamPosition
  let content: Content

  /// Reads `[id, [field, value, …]]`.
  init?(_ reply: RedisReply) {
    guard let parts = reply.elements, parts.count == 2,
      let position = parts[0].text.flatMap({ StreamPosition($0) }), let fields = parts[1].elements
    else { return nil }
    self.position = position
    var texts: [String: String] = [:]
    for index in stride(from: 0, to: fields.count - 1, by: 2) {
      if let name = fields[index].text { texts[name] = fields[index + 1].text }
    }
    if let epoch = texts["epoch"] {
      content = .epoch(epoch)
    } else if let scope = texts["scope"].flatMap({ PurgeScope(json: $0) }) {
      content = .purge(
        scope, machine: texts["machine"] ?? "", number: texts["number"].flatMap { Int($0) } ?? 0)
    } else {
      content = .unknown
    }
  }

  /// Reads the reply to `XREAD` of one stream. Returns `nil` for another reply.
  static func all(_ reply: RedisReply) -> [StreamEntry]? {
    if reply == .none { return [] }
    guard let streams = reply.elements, streams.count == 1, let stream = streams[0].elements,
      stream.count == 2, let entries = stream[1].elements
    else { return nil }
    return list(entries)
  }

  /// Reads the reply to `XRANGE`. Returns `nil` for another reply.
  static func list(_ entries: [RedisReply]) -> [StreamEntry]? {
    let read = entries.compactMap { StreamEntry($0) }
    return read.count == entries.count ? read : nil
  }
}

/// What a machine has applied.
struct AppliedPosition: Hashable, Sendable {
  /// The epoch of the stream.
  let epoch: String
  /// The last applied entry.
  var position: StreamPosition

  /// The position as a line of text.
  var text: String { "\(epoch) \(position)\n" }

  init(epoch: String, position: StreamPosition) {
    self.epoch = epoch
    self.position = position
  }

  /// Parses `text`; `nil` for anything else.
  init?(_ text: String) {
    let parts = text.split(separator: "\n").first?.split(separator: " ") ?? []
    guard parts.count == 2, let position = StreamPosition(String(parts[1])) else { return nil }
    self.init(epoch: String(parts[0]), position: position)
  }
}

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
    /// The server has lost entries that this machine has applied: begins a new epoch.
    case renewEpoch
  }

  /// Decides how a machine begins.
  ///
  /// - Parameter applied: what it has applied; `nil` for a machine that is new in the fleet.
  func beginning(for applied: AppliedPosition?) -> Beginning {
    guard let applied else {
      return isWhole ? .read(after: .start) : .purgeEverything(newest)
    }
    guard applied.epoch == epoch else { return .purgeEverything(newest) }
    if applied.position > newest { return .renewEpoch }
    guard applied.position >= oldest else {
      return isWhole ? .read(after: applied.position) : .purgeEverything(newest)
    }
    // Ids are times, so an entry that Redis lost may be followed by later ones.
    return hasApplied ? .read(after: applied.position) : .renewEpoch
  }
}
