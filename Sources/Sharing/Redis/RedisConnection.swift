// RedisConnection: one connection to Redis with its life cycle, driven by the client's thread.

import Core
import Glibc
import Synchronization

/// A connection with its life cycle, the commands in progress and the bytes in both directions. Only the client's
/// thread uses it.
final class RedisConnection {
  /// What waits for replies.
  private struct Pending {
    /// `nil`: the greeting.
    let request: RedisRequest?
    let count: Int
    let sentAt = ContinuousClock.now
    var replies: [RedisReply] = []

    /// When the request times out.
    var deadline: ContinuousClock.Instant? { request.map { sentAt + $0.time } }
  }

  /// Resolves a name on another thread, which wakes the client's thread.
  typealias Resolver = @Sendable (RedisAddress.Place) throws(SystemError) -> Void

  private(set) var life: ConnectionLife
  private let configuration: RedisConfiguration
  private let line: RedisLine
  private let counters: RedisCounters
  private let resolve: Resolver
  private let log: Log
  private var descriptor: CInt = -1
  private var parser: ReplyParser?
  private var output: [UInt8] = []
  private var sent = 0
  private var pending = Deque<Pending>()
  /// The first ones of `pending` that have timed out. Their replies are dropped when they come.
  private var late = 0
  /// Time-outs since the last reply in time, and when the last was.
  private var timedOut: (count: Int, at: ContinuousClock.Instant)?
  private var addresses: [RedisSocket] = []
  /// Whether a name is being resolved. A late answer is for the next attempt, so a slow resolver has one thread.
  private var isResolving = false
  /// The answer that came too late.
  private var lateAddresses: [RedisSocket] = []
  /// Counts attempts: each begins with another address, since one that is silent takes up a whole attempt.
  private var attempt = 0
  private var isReported = false

  init(
    _ configuration: RedisConfiguration, line: RedisLine, counters: RedisCounters, log: Log,
    resolve: @escaping Resolver
  ) {
    self.configuration = configuration
    self.line = line
    self.counters = counters
    self.log = log
    self.resolve = resolve
    life = ConnectionLife(
      configuration.pauses, patience: configuration.patience, now: .now)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  // MARK: Waiting

  /// What to wait for; a negative descriptor without a connection.
  var interest: (descriptor: CInt, events: Poll.Events) {
    if case .connecting = life.state { return (descriptor, .writable) }
    return (descriptor, sent < output.count ? [.readable, .writable] : .readable)
  }

  /// When `advance` has to be called.
  var deadline: ContinuousClock.Instant? {
    [awaitedDeadline, life.deadline].compactMap(\.self).min()
  }

  // MARK: Events

  /// Does what is due.
  func advance(now: ContinuousClock.Instant) {
    if let deadline = awaitedDeadline, now >= deadline {
      // This machine may be the late one: then the reply is there.
      receive()
      giveUpLateOnes(now: now)
    }
    switch life.advance(now: now) {
    case .connect: connect(now: now)
    case .close: end("no connection in time", now: now)
    case .greet, .nothing: break
    }
  }

  /// Receives the addresses of the server's name.
  func resolved(_ result: Result<[RedisSocket], RedisError>) {
    isResolving = false
    let isAwaited = if case .connecting = life.state { descriptor < 0 } else { false }
    switch result {
    case .success(let found):
      guard isAwaited else { return lateAddresses = found }
      connect(to: found)
    case .failure(let error): if isAwaited { fail("its name: \(error)", now: .now) }
    }
  }

  /// Sends a request. Its outcome may be there before this returns.
  func send(_ request: RedisRequest) {
    guard life.isReady else {
      if line.isCounted { counters.unavailable.add(request.count) }
      line.finish(request, .failure(.unavailable))
      return
    }
    if line.isCounted { counters.sent.add(request.count) }
    enqueue(Pending(request: request, count: request.count), request.bytes)
  }

  /// The descriptor is ready.
  func handle(_ events: Poll.Events) {
    if case .connecting = life.state {
      do throws(SystemError) {
        try RedisSocket.check(descriptor)
        if life.connected(now: .now) == .greet { greet() }
      } catch {
        connectNext(because: error.description)
      }
      return
    }
    if !events.subtracting(.writable).isEmpty { receive() }
    if descriptor >= 0, events.contains(.writable) { write() }
  }

  /// Ends the connection for good.
  func stop() {
    _ = life.stop()
    drop(.unavailable, now: .now)
  }

  // MARK: Connecting

  private func connect(now: ContinuousClock.Instant) {
    if let found = try? RedisSocket.all(of: configuration.address.place, numeric: true) {
      return connect(to: found)
    }
    // A name. Resolving it blocks, so another thread does it.
    let late = lateAddresses
    lateAddresses = []
    guard late.isEmpty else { return connect(to: late) }
    guard !isResolving else { return }
    do throws(SystemError) {
      try resolve(configuration.address.place)
      isResolving = true
    } catch {
      fail("no thread to resolve its name: \(error)", now: now)
    }
  }

  private func connect(to found: [RedisSocket]) {
    let first = found.isEmpty ? 0 : attempt % found.count
    attempt += 1
    addresses = Array(found[first...] + found[..<first])
    connectNext(because: "no address")
  }

  /// Tries the next address.
  private func connectNext(because reason: String) {
    closeSocket()
    var reason = reason
    while !addresses.isEmpty {
      do throws(SystemError) {
        descriptor = try addresses.removeFirst().connect().release()
        return
      } catch {
        reason = error.description
      }
    }
    fail(reason, now: .now)
  }

  private func greet() {
    let address = configuration.address
    var commands: [RedisCommand] = []
    if let password = address.password {
      commands.append(
        address.user.map { RedisCommand("AUTH", $0, password) } ?? RedisCommand("AUTH", password))
    }
    if address.database != 0 { commands.append(RedisCommand("SELECT", "\(address.database)")) }
    commands.append(RedisCommand("PING"))
    parser = ReplyParser(limit: configuration.replyLimit)
    var bytes: [UInt8] = []
    for command in commands { command.append(to: &bytes) }
    enqueue(Pending(request: nil, count: commands.count), bytes)
  }

  private func greeted(_ replies: [RedisReply]) {
    if let error = replies.lazy.compactMap(\.error).first {
      // A server without AUTH repeats its arguments, the password among them.
      let isSecret = configuration.address.password != nil && replies.first?.error != nil
      return fail(isSecret ? "AUTH: \(error.kind)" : error.description, now: .now)
    }
    guard replies.last == .status("PONG") else { return fail("no PONG", now: .now) }
    life.greeted()
    line.isReady.store(true, ordering: .releasing)
    if isReported {
      isReported = false
      log.info("Redis is back", fields: ["connection": .string(line.name)])
    }
    line.onReady.withLock { $0 }?()
  }

  // MARK: Bytes

  private func enqueue(_ item: Pending, _ bytes: [UInt8]) {
    pending.append(item)
    if sent == output.count {
      output = bytes
      sent = 0
    } else {
      compact()
      output += bytes
    }
    write()
  }

  private func write() {
    while sent < output.count {
      let count = output.withUnsafeBytes { bytes in
        let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
        return Glibc.send(descriptor, rest.baseAddress, rest.count, CInt(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else { return fail(errnoText(), now: .now) }
      sent += count
    }
    output = []
    sent = 0
  }

  /// Drops what was sent of a long backlog.
  private func compact() {
    guard sent > 1 << 20 else { return }
    output.removeFirst(sent)
    sent = 0
  }

  private func receive() {
    var ending: String?
    var violation: String?
    withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
      // 1 MiB at once: the other connections share the thread.
      for _ in 0..<16 {
        let count = recv(descriptor, buffer.baseAddress, buffer.count, 0)
        if count < 0, errno == EINTR { continue }
        if count < 0, errno == EAGAIN { return }
        guard count > 0 else {
          ending = count == 0 ? "the connection was closed" : errnoText()
          return
        }
        do throws(ReplyParser.Violation) {
          guard parser != nil else { return }
          try parser?.feed(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
          while descriptor >= 0, let reply = try parser?.next() { try take(reply) }
        } catch {
          violation = error.description
        }
        if violation != nil || descriptor < 0 { return }
      }
    }
    if let reason = violation ?? ending, descriptor >= 0 { fail(reason, now: .now) }
  }

  private func take(_ reply: RedisReply) throws(ReplyParser.Violation) {
    guard !pending.isEmpty else {
      throw ReplyParser.Violation(description: "a reply without a command")
    }
    pending[0].replies.append(reply)
    guard pending[0].replies.count == pending[0].count, let item = pending.popFirst() else {
      return
    }
    guard let request = item.request else { return greeted(item.replies) }
    guard late == 0 else { return late -= 1 }
    timedOut = nil
    let errors = item.replies.compactMap(\.error)
    counters.errors.add(errors.count)
    line.finish(request, .success(item.replies))
    if let error = errors.first(where: \.isLasting) { fail(error.description, now: .now) }
  }

  // MARK: Failures

  /// When the first request that has not timed out does.
  private var awaitedDeadline: ContinuousClock.Instant? {
    late < pending.count ? pending[late].deadline : nil
  }

  /// Fails the requests whose time is over. Several time-outs in a row close the connection; on one of reads that wait,
  /// whose times are long, the first does.
  private func giveUpLateOnes(now: ContinuousClock.Instant) {
    while let deadline = awaitedDeadline, now >= deadline, let request = pending[late].request {
      if pending[late].sentAt > timedOut?.at ?? pending[late].sentAt - .seconds(1) {
        timedOut = ((timedOut?.count ?? 0) + 1, now)
      }
      late += 1
      if line.isCounted { counters.timedOut.add(request.count) }
      line.finish(request, .failure(.timedOut))
    }
    if timedOut?.count ?? 0 >= (line.isCounted ? configuration.timeOuts : 1) {
      fail("no reply in time", now: now)
    }
  }

  private func fail(_ reason: String, now: ContinuousClock.Instant) {
    if life.fail(now: now) == .close { end(reason, now: now) }
  }

  /// Ends a connection whose life has noted the failure.
  private func end(_ reason: String, now: ContinuousClock.Instant) {
    counters.failures.add()
    if !isReported {
      isReported = true
      log.warning(
        "Redis is away", fields: ["connection": .string(line.name), "reason": .string(reason)])
    }
    drop(.lost, now: now)
  }

  private func drop(_ failure: RedisFailure, now: ContinuousClock.Instant) {
    line.isReady.store(false, ordering: .releasing)
    closeSocket()
    parser = nil
    output = []
    sent = 0
    addresses = []
    let failed = pending
    let finished = late
    pending = Deque()
    late = 0
    timedOut = nil
    for index in finished..<failed.count {
      if let request = failed[index].request { line.finish(request, .failure(failure)) }
    }
  }

  private func closeSocket() {
    guard descriptor >= 0 else { return }
    close(descriptor)
    descriptor = -1
  }
}

/// What a connection does and until when.
///
/// The breaker is closed in `ready` only. In every other state callers get `unavailable` at once. So a caller never
/// waits for a connection, and the probe of the half-open breaker is the greeting, which no caller waits for.
struct ConnectionLife {
  enum State: Equatable {
    /// Open: the next attempt begins at this time.
    case waiting(ContinuousClock.Instant)
    /// Half-open: the address is resolved and the socket connects, until this time.
    case connecting(ContinuousClock.Instant)
    /// Half-open: the greeting waits for its replies, until this time.
    case greeting(ContinuousClock.Instant)
    /// Closed: commands are sent.
    case ready
    /// The client has ended.
    case stopped
  }

  /// What the owner has to do.
  enum Action: Equatable {
    case connect
    case greet
    /// Close the socket and fail the commands in progress.
    case close
    case nothing
  }

  private(set) var state: State
  /// Failures since a greeting succeeded.
  private(set) var failures = 0
  private let pauses: Backoff
  private let patience: Duration

  /// Begins with an attempt at once.
  ///
  /// - Parameters:
  ///   - pauses: those between attempts.
  ///   - patience: the time for connecting, and again for the greeting.
  init(_ pauses: Backoff, patience: Duration, now: ContinuousClock.Instant) {
    state = .waiting(now)
    self.pauses = pauses
    self.patience = patience
  }

  var isReady: Bool { state == .ready }

  /// When `advance` has to be called; `nil` if only events change the state.
  var deadline: ContinuousClock.Instant? {
    switch state {
    case .waiting(let time), .connecting(let time), .greeting(let time): time
    case .ready, .stopped: nil
    }
  }

  /// The time has come.
  mutating func advance(now: ContinuousClock.Instant) -> Action {
    guard let deadline, now >= deadline else { return .nothing }
    if case .waiting = state {
      state = .connecting(now + patience)
      return .connect
    }
    return fail(now: now)
  }

  /// The socket is connected.
  mutating func connected(now: ContinuousClock.Instant) -> Action {
    guard case .connecting = state else { return .nothing }
    state = .greeting(now + patience)
    return .greet
  }

  /// The greeting has succeeded.
  mutating func greeted() {
    guard case .greeting = state else { return }
    state = .ready
    failures = 0
  }

  /// The connection failed, or a command had no reply in time.
  mutating func fail(now: ContinuousClock.Instant) -> Action {
    switch state {
    case .waiting, .stopped: return .nothing
    case .connecting, .greeting, .ready: break
    }
    state = .waiting(now + pauses.pause(after: failures))
    failures += 1
    return .close
  }

  mutating func stop() -> Action {
    state = .stopped
    return .close
  }
}
