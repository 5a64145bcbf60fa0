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
