// StreamEntry: entries of the purge stream, and scopes, as bytes that are untrusted.

import FoundationEssentials
import Model

/// The id of a stream entry: milliseconds of the server's clock, and a number within them.
struct StreamPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
  let milliseconds: UInt64
  let number: UInt64

  /// Before the first entry.
  static let start = StreamPosition(milliseconds: 0, number: 0)

  init(milliseconds: UInt64, number: UInt64) {
    self.milliseconds = milliseconds
    self.number = number
  }

  /// Parses `1700000000000-0`.
  init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let first = UInt64(parts[0]), let last = UInt64(parts[1]) else {
      return nil
    }
    self.init(milliseconds: first, number: last)
  }

  var description: String { "\(milliseconds)-\(number)" }

  static func < (left: Self, right: Self) -> Bool {
    (left.milliseconds, left.number) < (right.milliseconds, right.number)
  }
}

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

/// A scope in JSON: `{"kind":"url","value":"https://example.com/a.jpg"}`. Kinds are those of `DELETE /admin/cache`, and
/// `everything`.
private struct ScopeText: Codable {
  let kind: String
  var value: String?
}

extension PurgeScope {
  /// The longest accepted text, in bytes.
  static let longestJSON = 16_384

  /// The scope as JSON on one line.
  var json: String {
    let text: ScopeText =
      switch self {
      case .url(let url): ScopeText(kind: "url", value: url.text)
      case .prefix(let url): ScopeText(kind: "prefix", value: url.text)
      case .host(let host): ScopeText(kind: "host", value: host.description)
      case .tag(let tag): ScopeText(kind: "tag", value: tag)
      case .everything: ScopeText(kind: "everything")
      }
    // Two texts are always encodable. Everything contains each scope.
    guard let data = try? JSONEncoder().encode(text) else { return "{\"kind\":\"everything\"}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// Parses untrusted JSON. Returns `nil` for anything that `json` does not write.
  init?(json: String) {
    guard json.utf8.count <= Self.longestJSON,
      let text = try? JSONDecoder().decode(ScopeText.self, from: Data(json.utf8))
    else { return nil }
    func url() -> SourceURL? {
      text.value.flatMap { value in
        (try? SourceURL(parsing: value)).flatMap { $0.text == value ? $0 : nil }
      }
    }
    switch text.kind {
    case "url":
      guard let url = url() else { return nil }
      self = .url(url)
    case "prefix":
      guard let url = url() else { return nil }
      self = .prefix(url)
    case "host":
      guard let host = text.value.flatMap({ HostPattern($0) }) else { return nil }
      self = .host(host)
    case "tag":
      guard let tag = text.value else { return nil }
      self = .tag(tag)
    case "everything": self = .everything
    default: return nil
    }
  }
}
