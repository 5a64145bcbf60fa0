// RedisClient: sends commands to Redis from one thread, without blocking others.

import Core
import Glibc
import Synchronization

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
  private let state = Lock(State())
  private let wake: WakeSignal
  private let thread = Lock<OwnThread?>(nil)

  private enum Message: Sendable {
    case send(RedisRequest, line: Int)
    case resolved(Result<[RedisSocket], RedisError>, line: Int)
  }

  private struct State {
    var messages: [Message] = []
    var isStopped = false
  }

  /// Starts the thread, which connects at once.
  init(_ configuration: RedisConfiguration, log: Log) throws(SystemError) {
    self.configuration = configuration
    lines = [Line.commands, .stream].map {
      RedisLine(name: "\($0)", isCounted: $0 == .commands, limit: configuration.queueLimit)
    }
    wake = try WakeSignal()
    let started = try OwnThread(name: "pictor-redis", rank: .work) { [self] in
      run(
        lines.enumerated().map { index, line in
          RedisConnection(configuration, line: line, counters: counters, log: log) {
            [self] place throws(SystemError) in
            try OwnThread.start(name: "pictor-names", rank: .work) { [self] in
              let result = Result { () throws(RedisError) in
                try RedisSocket.all(of: place, numeric: false)
              }
              _ = post(.resolved(result, line: index))
            }
          }
        })
    }
    thread.withLock { $0 = started }
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
    guard !commands.isEmpty else { return [] }
    let place = lines[line.rawValue]
    var bytes: [UInt8] = []
    if place.isReady.load(ordering: .acquiring) {
      for command in commands { command.append(to: &bytes) }
    }
    guard !bytes.isEmpty, place.admit(bytes.count) else {
      if place.isCounted { counters.unavailable.add(commands.count) }
      throw .unavailable
    }
    let outcome = await withCheckedContinuation { [bytes] continuation in
      let request = RedisRequest(
        bytes: bytes, count: commands.count, time: time ?? configuration.timeout,
        finish: { continuation.resume(returning: $0) })
      if !post(.send(request, line: line.rawValue)) {
        place.finish(request, .failure(.unavailable))
      }
    }
    return try outcome.get()
  }

  /// Ends the client. Commands in progress fail. Blocks until its thread has ended.
  func stop() {
    state.withLock { $0.isStopped = true }
    wake.set()
    thread.withLock { $0.take() }?.join()
  }

  // MARK: The thread

  /// Passes a message to the thread. Returns `false` if it has ended.
  private func post(_ message: Message) -> Bool {
    let isPosted = state.withLock { state in
      if !state.isStopped { state.messages.append(message) }
      return !state.isStopped
    }
    if isPosted { wake.set() }
    return isPosted
  }

  private func run(_ connections: [RedisConnection]) {
    while true {
      let (messages, isStopped) = state.withLock { state in
        defer { state.messages = [] }
        return (state.messages, state.isStopped)
      }
      for message in messages {
        switch message {
        case .send(let request, let line): connections[line].send(request)
        case .resolved(let result, let line): connections[line].resolved(result)
        }
      }
      if isStopped { break }
      let now = ContinuousClock.now
      for connection in connections { connection.advance(now: now) }
      var poll = Poll([(wake.descriptor, .readable)] + connections.map(\.interest))
      poll.wait(until: connections.compactMap(\.deadline).min())
      if !poll.events(of: 0).isEmpty { wake.reset() }
      for (index, connection) in connections.enumerated() {
        let events = poll.events(of: index + 1)
        if !events.isEmpty { connection.handle(events) }
      }
    }
    for connection in connections { connection.stop() }
  }
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

/// The configuration of a `RedisClient`.
struct RedisConfiguration: Sendable {
  let address: RedisAddress
  /// The longest wait for a reply.
  var timeout = FleetSettings().timeout
  /// Time-outs after which the server is away, each of a command that was sent after the one before.
  var timeOuts = 3
  /// The pause after a first failure.
  var retryInterval = FleetSettings().retryInterval
  /// The pauses between attempts to connect: up to eight times as long, and never shorter than the interval, which bounds
  /// the time-outs of callers.
  var pauses: Backoff { Backoff(retryInterval, longest: retryInterval * 8, jitter: 1...1.25) }
  /// The time for connecting, and again for the greeting. No caller waits for either.
  var patience = Duration.seconds(2)
  /// The most bytes of commands that wait for their replies, on one connection.
  var queueLimit = 16 << 20
  /// The most bytes of one reply: what one command may store, and its frame.
  var replyLimit = 17 << 20
}

/// The address of a socket as bytes, for connect(2).
struct RedisSocket: Sendable {
  private let family: CInt
  private let address: [UInt8]

  /// Returns the addresses of a place. Blocks while a name is resolved, unless `numeric`.
  ///
  /// - Parameter numeric: whether only IP addresses and paths have a result.
  /// - Throws: the reason in words.
  static func all(of place: RedisAddress.Place, numeric: Bool) throws(RedisError) -> [RedisSocket] {
    switch place {
    case .unix(let path):
      guard let address = UnixAddress(path) else { throw RedisError("the path is too long".utf8) }
      return [
        address.withSocketAddress { pointer, length in
          RedisSocket(
            family: AF_UNIX,
            address: Array(UnsafeRawBufferPointer(start: pointer, count: Int(length))))
        }
      ]
    case .host(let host, let port):
      var hints = addrinfo()
      hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
      hints.ai_flags = AI_NUMERICSERV | (numeric ? AI_NUMERICHOST : AI_ADDRCONFIG)
      var list: UnsafeMutablePointer<addrinfo>?
      let status = getaddrinfo(host, "\(port)", &hints, &list)
      guard status == 0 else { throw RedisError(String(cString: gai_strerror(status)).utf8) }
      defer { freeaddrinfo(list) }
      var found: [RedisSocket] = []
      var next = list
      while let entry = next, found.count < 8 {
        found.append(
          RedisSocket(
            family: entry.pointee.ai_family,
            address: Array(
              UnsafeRawBufferPointer(
                start: entry.pointee.ai_addr, count: Int(entry.pointee.ai_addrlen)))))
        next = entry.pointee.ai_next
      }
      return found
    }
  }

  /// Begins to connect. The descriptor is writable once the connection is there or has failed.
  func connect() throws(SystemError) -> OwnedDescriptor {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(family, kind, 0))
    guard socket.value >= 0 else { throw SystemError() }
    if family != AF_UNIX {
      var one: CInt = 1
      setsockopt(
        socket.value, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
    }
    let descriptor = socket.value
    let status = address.withUnsafeBytes { bytes -> CInt in
      guard let start = bytes.baseAddress else { return -1 }
      return Glibc.connect(
        descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
    }
    guard status == 0 || errno == EINPROGRESS else { throw SystemError() }
    return socket
  }

  /// Throws the reason for which a connection could not be made.
  static func check(_ descriptor: CInt) throws(SystemError) {
    var code: CInt = 0
    var length = socklen_t(MemoryLayout<CInt>.size)
    guard getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &code, &length) == 0 else {
      throw SystemError()
    }
    guard code == 0 else { throw SystemError(code) }
  }
}
