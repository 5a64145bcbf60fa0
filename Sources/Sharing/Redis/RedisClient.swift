// RedisClient: sends commands to Redis from a thread of its own, without blocking others.

import Core
import Glibc

/// A connection to a Redis server with its thread, which connects again when it fails.
///
/// Each command has a deadline, which counts from when it is sent; a reply that is there when it
/// passes is taken. After a failure, or several time-outs in a row, the breaker is open: commands
/// fail at once, until the client has connected and greeted the server again. So Redis away costs a
/// few time-outs an interval, and a busy machine is not Redis away.
final class RedisClient: Sendable {
  private struct State {
    var isReady = false
    var isStopped = false
    /// Requests that the thread has not taken yet.
    var requests: [RedisRequest] = []
    /// Bytes of commands that wait for their replies.
    var bytes = 0
    var onReady: (@Sendable () -> Void)?
  }

  let counters: RedisCounters
  private let configuration: RedisConfiguration
  private let state = Lock(State())
  private let wake: WakeSignal
  private let log: Log

  /// Starts the thread, which connects at once.
  init(
    _ configuration: RedisConfiguration, counters: RedisCounters = RedisCounters(), log: Log
  ) throws(SystemError) {
    self.configuration = configuration
    self.counters = counters
    self.log = log
    wake = try WakeSignal()
    try OwnThread.start(name: "pictor-redis", rank: .work) { [self] in run() }
  }

  var isReady: Bool { state.withLock { $0.isReady } }

  /// Sets what is called on the client's thread after each greeting. It must not block.
  func onReady(_ observer: (@Sendable () -> Void)?) { state.withLock { $0.onReady = observer } }

  /// Sends commands in one pipeline and returns their replies, one each.
  ///
  /// - Parameter time: the longest wait; `nil` for the configured one.
  func send(
    _ commands: [RedisCommand], within time: Duration? = nil
  ) async throws(RedisFailure) -> [RedisReply] {
    guard !commands.isEmpty else { return [] }
    var bytes: [UInt8] = []
    if isReady { for command in commands { command.append(to: &bytes) } }
    let outcome = await withCheckedContinuation { [bytes] continuation in
      let isAdded = add(
        RedisRequest(bytes: bytes, count: commands.count, time: time ?? configuration.timeout) {
          [self] outcome in
          state.withLock { $0.bytes -= bytes.count }
          continuation.resume(returning: outcome)
        })
      if !isAdded { continuation.resume(returning: .failure(.unavailable)) }
    }
    if case .failure(.unavailable) = outcome, configuration.isCounted {
      counters.unavailable.add(commands.count)
    }
    return try outcome.get()
  }

  /// Passes a request to the thread. Returns `false` without room or a connection.
  private func add(_ request: RedisRequest) -> Bool {
    let isAdded = state.withLock { state in
      let bytes = state.bytes + request.bytes.count
      guard state.isReady, !request.bytes.isEmpty, bytes <= configuration.queueLimit else {
        return false
      }
      state.bytes = bytes
      state.requests.append(request)
      return true
    }
    if isAdded { wake.set() }
    return isAdded
  }

  /// Ends the client. Commands in progress fail. Does not wait for the thread, which may look up a
  /// name.
  func stop() {
    state.withLock { state in
      state.isStopped = true
      state.isReady = false
    }
    wake.set()
  }

  // MARK: The thread

  /// Connects, serves callers and pauses after failures, until `stop`.
  private func run() {
    var attempts = 0
    var failures = 0
    while !state.withLock({ $0.isStopped }) {
      do throws(RedisError) {
        defer { attempts += 1 }
        let connection = try RedisConnection(configuration, counters, attempt: attempts)
        try serve(connection) {
          if failures > 0 {
            log.info("Redis is back", fields: ["connection": .string(configuration.name)])
          }
          failures = 0
        }
      } catch {
        counters.failures.add()
        if failures == 0 {
          log.warning(
            "Redis is away",
            fields: [
              "connection": .string(configuration.name), "reason": .string(error.description),
            ])
        }
        pause(until: .now + configuration.pauses.pause(after: failures))
        failures += 1
      }
    }
  }

  /// Serves callers. Returns when the client stops.
  ///
  /// - Parameter greeted: called once the server has answered the greeting.
  /// - Throws: the failure of the connection.
  private func serve(
    _ connection: RedisConnection, greeted: () -> Void
  ) throws(RedisError) {
    do throws(RedisError) {
      while true {
        let (requests, isStopped) = state.withLock { state in
          defer { state.requests = [] }
          return (state.requests, state.isStopped)
        }
        for request in requests { connection.send(request) }
        guard !isStopped else { return connection.end(.unavailable) }
        var poll = Poll([(wake.descriptor, .readable), connection.interest])
        poll.wait(until: connection.deadline)
        if !poll.events(of: 0).isEmpty { wake.reset() }
        let wasReady = connection.isReady
        try connection.advance(poll.events(of: 1), now: .now)
        guard connection.isReady, !wasReady else { continue }
        greeted()
        let observer = state.withLock { state in
          state.isReady = !state.isStopped
          return state.onReady
        }
        observer?()
      }
    } catch {
      let unsent = state.withLock { state in
        state.isReady = false
        defer { state.requests = [] }
        return state.requests
      }
      connection.end(.lost)
      for request in unsent { request.finish(.failure(.unavailable)) }
      throw error
    }
  }

  private func pause(until time: ContinuousClock.Instant) {
    var poll = Poll([wake.descriptor])
    while ContinuousClock.now < time, !state.withLock({ $0.isStopped }) {
      poll.wait(until: time)
      wake.reset()
    }
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

struct RedisConfiguration: Sendable {
  let address: RedisAddress
  var name = "commands"
  /// Whether requests wait for its commands, which are counted then; `false`: each is an `XREAD`
  /// that waits for entries.
  var isCounted = true
  /// The longest wait for a reply.
  var timeout = FleetSettings().timeout
  /// The pause after a first failure.
  var retryInterval = FleetSettings().retryInterval
  /// The pauses between attempts to connect: up to eight times as long, and never shorter than the
  /// interval, which bounds the time-outs of callers.
  var pauses: Backoff { Backoff(retryInterval, longest: retryInterval * 8, jitter: 1...1.25) }
  /// The time for connecting to an address, and again for the greeting. No caller waits for either.
  var patience = Duration.seconds(2)
  /// Time-outs after which the server is away, each of a command that was sent after the one
  /// before. The times of reads that wait are long.
  var timeOuts: Int { isCounted ? 3 : 1 }
  /// The most bytes of commands that wait for their replies.
  var queueLimit = 16 << 20
  /// The most bytes of one reply: what one command may store, and its frame.
  var replyLimit = 17 << 20
}

final class RedisCounters: Sendable {
  /// Commands besides those of the reader of the purge stream, which no request waits for.
  let sent = Counter(
    "commands", "pictor_fleet_commands_total", "Commands to Redis, by what became of them.",
    ["result": "sent"])
  /// Not sent, because the breaker was open or too many commands waited.
  let unavailable = Counter(
    "unavailable", "pictor_fleet_commands_total", "Commands not sent.", ["result": "unavailable"])
  let timedOut = Counter(
    "timed_out", "pictor_fleet_commands_total", "Commands without a reply in time.",
    ["result": "timed_out"])
  let errors = Counter(
    "errors", "pictor_fleet_commands_total", "Error replies.", ["result": "error"])
  /// Refused, ended, silent, or with an invalid reply.
  let failures = Counter(
    "failures", "pictor_fleet_connection_failures_total", "Connections that failed.",
    ["service": "redis"])
}
