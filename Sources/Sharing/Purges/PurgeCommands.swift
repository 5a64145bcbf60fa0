// PurgeCommands: the commands of the purge stream, and their replies.

import Model

/// The commands of one fleet's stream.
struct PurgeCommands: Sendable {
  /// About how many entries the stream keeps.
  static let length = 100_000
  /// How many entries one read returns at most. With the longest scopes they are a third of the longest reply.
  static let batch = 256
  /// How many missed purges in one read are one of everything.
  static let many = 200

  private let epochKey: String
  private let streamKey: String

  init(prefix: String) {
    epochKey = prefix + "epoch"
    streamKey = prefix + "purges"
  }

  /// Begins a new epoch if Redis has none, if its stream is gone, or if its epoch is one that lost entries. In one step,
  /// since machines do this at the same time.
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
  ///   - epoch: the epoch of a new stream.
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

  /// Asks for the epoch, waits for entries after a position, and asks for the oldest entry: if that is later than the
  /// position, entries may have been trimmed before they were read.
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

  /// Adds a purge to a stream that exists. The reply is its position, or none without a stream: a new one begins with
  /// its epoch.
  func add(_ scope: PurgeScope, number: Int, from machine: String) -> RedisCommand {
    RedisCommand(
      "XADD", streamKey, "NOMKSTREAM", "MAXLEN", "~", "\(Self.length)", "*", "machine", machine,
      "number", "\(number)", "scope", scope.json)
  }
}
