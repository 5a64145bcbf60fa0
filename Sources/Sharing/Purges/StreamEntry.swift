// StreamEntry: the purge stream's entries, commands and state, from untrusted bytes.

import Core
import FoundationEssentials

/// The id of a stream entry: milliseconds of the server's clock, and a number within them.
struct StreamPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
  let milliseconds: UInt64
  let number: UInt64

  /// Before the first entry.
  static let start = StreamPosition(milliseconds: 0, number: 0)

  var description: String { "\(milliseconds)-\(number)" }

  static func < (left: Self, right: Self) -> Bool {
    (left.milliseconds, left.number) < (right.milliseconds, right.number)
  }
}

extension StreamPosition {
  /// Parses `1700000000000-0`.
  init?(_ text: String) {
    let parts = text.split(separator: "-", omittingEmptySubsequences: false)
    guard parts.count == 2, let first = UInt64(parts[0]), let last = UInt64(parts[1]) else {
      return nil
    }
    self.init(milliseconds: first, number: last)
  }
}

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

/// A scope in JSON: `{"kind":"url","value":"https://example.com/a.jpg"}`.
private struct ScopeText: Codable {
  let kind: String
  let value: String?
}

extension PurgeScope {
  /// The longest accepted text, in bytes.
  static let longestJSON = 16_384

  /// The scope as JSON on one line.
  var json: String {
    let (kind, value) = words
    // Two texts are always encodable. Everything contains each scope.
    guard let data = try? JSONEncoder().encode(ScopeText(kind: kind, value: value)) else {
      return "{\"kind\":\"everything\"}"
    }
    return String(decoding: data, as: UTF8.self)
  }

  /// Parses untrusted JSON. Returns `nil` for anything that `json` does not write.
  init?(json: String) {
    guard json.utf8.count <= Self.longestJSON,
      let text = try? JSONDecoder().decode(ScopeText.self, from: Data(json.utf8))
    else { return nil }
    self.init(kind: text.kind, value: text.value)
  }
}

/// The commands of one fleet's stream.
struct PurgeCommands: Sendable {
  /// About how many entries the stream keeps.
  static let length = 100_000
  /// How many entries one read returns at most. With the longest scopes they are a third of the
  /// longest reply.
  static let batch = 256
  /// How many missed purges in one read are one of everything.
  static let many = 200

  private let epochKey: String
  private let streamKey: String

  init(prefix: String) {
    epochKey = prefix + "epoch"
    streamKey = prefix + "purges"
  }

  /// Begins a new epoch if Redis has none, if its stream is gone, or if its epoch is one that lost
  /// entries. In one step, since machines do this at the same time.
  private static let script = """
    local e=redis.call('GET',KEYS[1])
    if not e or e==ARGV[2] or redis.call('XLEN',KEYS[2])==0 then
      e=ARGV[1]
      redis.call('DEL',KEYS[2])
      redis.call('SET',KEYS[1],e)
      redis.call('XADD',KEYS[2],'*','epoch',e)
    end
    local a=1
    if ARGV[3]~='' then a=#redis.call('XRANGE',KEYS[2],ARGV[3],ARGV[3]) end
    return {e,redis.call('XRANGE',KEYS[2],'-','+','COUNT',1)[1],
      redis.call('XREVRANGE',KEYS[2],'+','-','COUNT',1)[1],a}
    """

  /// Asks for the state of the stream.
  ///
  /// - Parameters:
  ///   - lost: an epoch that has lost entries; empty for none.
  ///   - applied: the last entry that the machine has applied; `nil` for none.
  func state(epoch: String, lost: String, applied: StreamPosition?) -> RedisCommand {
    RedisCommand(
      "EVAL", Self.script, "2", epochKey, streamKey, epoch, lost, applied.map { "\($0)" } ?? "")
  }

  func readState(_ reply: RedisReply) -> StreamState? {
    guard let parts = reply.elements, parts.count == 4, let epoch = parts[0].text, !epoch.isEmpty,
      epoch.utf8.count <= 64, !epoch.contains(where: \.isWhitespace),
      let oldest = StreamEntry(parts[1]), let newest = StreamEntry(parts[2])
    else { return nil }
    return StreamState(
      epoch: epoch, oldest: oldest.position, newest: newest.position,
      isWhole: oldest.content == .epoch(epoch), hasApplied: parts[3] != .integer(0))
  }

  /// Asks for the epoch, waits for entries after a position, and asks for the oldest entry: if that
  /// is later than the position, entries may have been trimmed before they were read.
  func read(after position: StreamPosition, block: Duration) -> [RedisCommand] {
    let milliseconds = max(Int(block / .milliseconds(1)), 1)
    return [
      RedisCommand("GET", epochKey),
      RedisCommand(
        "XREAD", "COUNT", "\(Self.batch)", "BLOCK", "\(milliseconds)", "STREAMS", streamKey,
        "\(position)"),
      RedisCommand("XRANGE", streamKey, "-", "+", "COUNT", "1"),
    ]
  }

  /// Adds a purge to a stream that exists. The reply is its position, or none without a stream: a
  /// new one begins with its epoch.
  func add(_ scope: PurgeScope, number: Int, from machine: String) -> RedisCommand {
    RedisCommand(
      "XADD", streamKey, "NOMKSTREAM", "MAXLEN", "~", "\(Self.length)", "*", "machine", machine,
      "number", "\(number)", "scope", scope.json)
  }
}

/// The state of the stream when a machine connects.
struct StreamState: Equatable {
  let epoch: String
  let oldest: StreamPosition
  let newest: StreamPosition
  /// Whether the stream still has its first entry, so nothing was trimmed.
  let isWhole: Bool
  /// Whether the stream has the entry that the machine applied last.
  let hasApplied: Bool

  /// What a machine does before it reads the stream.
  enum Beginning: Equatable {
    case read(after: StreamPosition)
    /// Purges everything, because purges may be lost, and continues after this position.
    case purgeEverything(StreamPosition)
    /// The server has lost entries that this machine has applied, or is back in an epoch that this
    /// machine has left: begins a new epoch.
    case renewEpoch
  }

  /// Decides how a machine begins.
  ///
  /// - Parameter applied: what it has applied; `nil` for a machine that is new in the fleet.
  func beginning(for applied: AppliedPosition?) -> Beginning {
    guard let applied else {
      return isWhole ? .read(after: .start) : .purgeEverything(newest)
    }
    // An epoch of before knows nothing of the purges that were made after it, and allows what they
    // cover.
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
  let position: StreamPosition
  /// Earlier epochs, the last one first. One of them comes back if Redis' data is set back, without
  /// the purges that were made meanwhile.
  private(set) var left: [String] = []

  /// A machine that may have missed any purge: it purges everything before it reads the stream.
  static let unknown = AppliedPosition(epoch: "", position: .start)

  /// The position after this one.
  func moved(to position: StreamPosition, epoch: String) -> AppliedPosition {
    let isSame = epoch == self.epoch || self.epoch.isEmpty
    let left = Array(((isSame ? [] : [self.epoch]) + left).prefix(Self.limit))
    return AppliedPosition(epoch: epoch, position: position, left: left)
  }

  /// The position as text: a line for epoch and entry, and one for each epoch that was left.
  var text: String { (["\(epoch) \(position)"] + left).map { $0 + "\n" }.joined() }
}

extension AppliedPosition {
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
    self.init(epoch: String(parts[0]), position: position, left: left.map { String($0) })
  }
}
