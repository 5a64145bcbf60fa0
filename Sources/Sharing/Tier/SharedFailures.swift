// SharedFailures: failed URLs in Redis, checked like network input.

import Model
import Platform
import Telemetry

/// The failures of sources that machines share.
///
/// A failure is written without a wait and without a queue of its own: the client bounds what it has to send, and keeps
/// the order. So a failure is in Redis before the lease ends under which it happened.
final class SharedFailures: Sendable {
  let counters = SharedFailureCounters()
  private let client: RedisClient
  private let stream: PurgeStream
  private let prefix: String
  private let limits: String

  /// - Parameter limits: text that is the same on machines for which the same sources fail.
  init(
    client: RedisClient, stream: PurgeStream, prefix: String, limits: String
  ) {
    self.client = client
    self.stream = stream
    self.prefix = prefix + "f:"
    self.limits = limits
  }

  // MARK: Reading

  /// The command that reads the failure of a source.
  func look(for source: CacheKey) -> RedisCommand { RedisCommand("GET", name(of: source)) }

  /// Returns the failure of a source that no purge covers.
  func failure(of source: CacheKey) async -> SharedFailure? {
    guard stream.isSynchronised, let reply = try? await client.send([look(for: source)]).first
    else { return nil }
    return await failure(of: source, in: reply)
  }

  /// Returns the failure in the reply to `look`. Asks Redis for the time that is left, because clocks of machines differ.
  func failure(of source: CacheKey, in reply: RedisReply) async -> SharedFailure? {
    guard case .bytes(let bytes) = reply else { return nil }
    guard let (mark, failure) = SharedFailureCoding.decode(bytes, as: source) else {
      counters.refused.add()
      return nil
    }
    guard let answer = try? await client.send([RedisCommand("PTTL", name(of: source))]).first,
      case .integer(let milliseconds) = answer
    else { return nil }
    // Checked last: a purge that arrives meanwhile counts. An entry without a TTL, or with a longer one than it says,
    // was not written by Pictor.
    guard milliseconds > 0, milliseconds <= failure.seconds * 1_000,
      stream.allows(source, mark: mark, isFailure: true)
    else {
      counters.refused.add()
      return nil
    }
    counters.found.add()
    // Rounded up: an entry that is there has a second at least.
    let seconds = (milliseconds + 999) / 1_000
    return SharedFailure(
      key: source, error: failure.error, seconds: seconds,
      clientSeconds: failure.clientSeconds - (failure.seconds - seconds))
  }

  // MARK: Writing

  /// Writes a failure, if it is one of all machines.
  func share(_ failure: SharedFailure, since mark: SharedMark) {
    guard let bytes = SharedFailureCoding.encode(failure, since: mark) else { return }
    let command = RedisCommand(
      setting: name(of: failure.key), to: bytes, milliseconds: failure.seconds * 1_000)
    client.send([command], on: .commands, within: nil) { [counters] outcome in
      let isWritten = (try? outcome.get())?.first == .status("OK")
      (isWritten ? counters.shared : counters.dropped).add()
    }
  }

  /// Removes a failure. If that fails, it ends by its TTL.
  func remove(_ source: CacheKey) {
    client.send([RedisCommand("DEL", name(of: source))], on: .commands, within: nil) { _ in }
  }

  /// Machines of other limits have names of their own, and do not overwrite each other.
  func name(of source: CacheKey) -> String {
    prefix + SharedEntry.digest(Array((limits + "\n" + source.text).utf8)[...])
  }
}

/// Counts since the start.
final class SharedFailureCounters: Sendable {
  /// Failures written.
  let shared = Counter()
  /// Failures that were not written: Redis was away or full.
  let dropped = Counter()
  /// Failures of other machines.
  let found = Counter()
  /// Entries that are purged, damaged or of another version.
  let refused = Counter()
}
