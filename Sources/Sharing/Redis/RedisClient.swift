// RedisClient: sends commands to Redis without blocking a thread.

import Model
import Platform
import Synchronization
import Telemetry

/// A client of one Redis server: two connections on one thread, for short commands and for the read that waits.
///
/// Each command has a deadline, which counts from when it is sent; a reply that is there when it passes is taken. After a
/// failure, or several time-outs in a row, the breaker is open: commands fail at once, until the client has connected
/// and greeted the server again. So Redis away costs a few time-outs an interval, and a busy machine is not Redis away.
final class RedisClient: Sendable {
  /// The connection that a command uses.
  enum Line: Int {
    /// Commands that are answered at once.
    case commands
    /// `XREAD BLOCK`, which delays the commands behind it.
    case stream
  }

  let counters = RedisCounters()
  private let configuration: RedisConfiguration
  private let lines: [RedisLine]
  private let thread: RedisThread

  /// Starts the thread.
  init(_ configuration: RedisConfiguration, log: Log) throws(SystemError) {
    self.configuration = configuration
    lines = [Line.commands, .stream].map {
      RedisLine(name: "\($0)", isCounted: $0 == .commands, limit: configuration.queueLimit)
    }
    thread = try RedisThread()
    try thread.start(configuration, lines: lines, counters: counters, log: log)
  }

  /// Whether the breaker is closed.
  func isReady(_ line: Line = .commands) -> Bool {
    lines[line.rawValue].isReady.load(ordering: .acquiring)
  }

  /// Bytes of commands that wait for their replies.
  var waitingBytes: Int { lines[Line.commands.rawValue].waiting }

  /// Sets what is called on the client's thread after each greeting. It must not block.
  func onReady(_ line: Line, _ observer: (@Sendable () -> Void)?) {
    lines[line.rawValue].onReady.withLock { $0 = observer }
  }

  /// Sends commands in one pipeline and returns their replies, one each.
  ///
  /// - Parameter time: the longest wait; `nil` for the configured one.
  func send(
    _ commands: [RedisCommand], on line: Line = .commands, within time: Duration? = nil
  ) async throws(RedisFailure) -> [RedisReply] {
    let outcome = await withCheckedContinuation { continuation in
      send(commands, on: line, within: time) { continuation.resume(returning: $0) }
    }
    return try outcome.get()
  }

  /// Sends commands in one pipeline.
  ///
  /// - Parameter finish: called once, with the replies, on any thread; must not block.
  func send(
    _ commands: [RedisCommand], on line: Line, within time: Duration?,
    finish: @escaping @Sendable (RedisRequest.Outcome) -> Void
  ) {
    guard !commands.isEmpty else { return finish(.success([])) }
    let place = lines[line.rawValue]
    var bytes: [UInt8] = []
    if place.isReady.load(ordering: .acquiring) {
      for command in commands { command.append(to: &bytes) }
    }
    guard !bytes.isEmpty, place.admit(bytes.count) else {
      if place.isCounted { counters.unavailable.add(commands.count) }
      return finish(.failure(.unavailable))
    }
    let request = RedisRequest(
      bytes: bytes, count: commands.count, time: time ?? configuration.timeout,
      finish: finish)
    if !thread.send(request, line: line.rawValue) {
      place.finish(request, .failure(.unavailable))
    }
  }

  /// Ends the client. Commands in progress fail. Blocks until its thread has ended.
  func stop() { thread.stop() }
}

/// The callers' side of a connection.
final class RedisLine: Sendable {
  /// The name, for the log.
  let name: String
  /// Whether the breaker is closed. Callers of an open one fail without a command.
  let isReady = Atomic<Bool>(false)
  /// Called on the client's thread after each greeting. Must not block.
  let onReady = Lock<(@Sendable () -> Void)?>(nil)
  /// Whether requests wait for its commands.
  let isCounted: Bool
  private let waitingBytes = Atomic<Int>(0)
  private let limit: Int

  init(name: String, isCounted: Bool, limit: Int) {
    self.name = name
    self.isCounted = isCounted
    self.limit = limit
  }

  /// Bytes of commands that wait for their replies.
  var waiting: Int { waitingBytes.load(ordering: .relaxed) }

  /// Takes room for a request. Returns `false` without room.
  func admit(_ count: Int) -> Bool {
    let used = waitingBytes.wrappingAdd(count, ordering: .relaxed).newValue
    guard used <= limit else {
      waitingBytes.wrappingSubtract(count, ordering: .relaxed)
      return false
    }
    return true
  }

  /// Ends an admitted request.
  func finish(_ request: RedisRequest, _ outcome: RedisRequest.Outcome) {
    waitingBytes.wrappingSubtract(request.bytes.count, ordering: .relaxed)
    request.finish(outcome)
  }
}

/// Commands that are sent in one pipeline, and whose replies arrive together.
struct RedisRequest: Sendable {
  typealias Outcome = Result<[RedisReply], RedisFailure>

  /// The commands in the protocol's form.
  let bytes: [UInt8]
  /// The number of commands, at least 1.
  let count: Int
  /// How long the replies may take, from when the commands are sent.
  let time: Duration
  /// Called once, on the client's thread. Must not block.
  let finish: @Sendable (Outcome) -> Void
}
