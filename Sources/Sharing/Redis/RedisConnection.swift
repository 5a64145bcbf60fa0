// RedisConnection: one connection to Redis, from its address to its replies.

import Core
import Glibc

/// A connection with the commands in progress and the bytes in both directions. Only the client's
/// thread uses it.
final class RedisConnection {
  /// What waits for replies.
  private struct Pending {
    /// `nil`: the greeting.
    let request: RedisRequest?
    let count: Int
    let sentAt = ContinuousClock.now
    let deadline: ContinuousClock.Instant
    var replies: [RedisReply] = []

    init(_ request: RedisRequest?, count: Int, time: Duration) {
      self.request = request
      self.count = count
      deadline = sentAt + time
    }
  }

  /// Whether the server has answered the greeting.
  private(set) var isReady = false
  private let configuration: RedisConfiguration
  private let counters: RedisCounters
  private let socket: OwnedDescriptor
  private var parser: ReplyParser
  private var buffer = [UInt8](repeating: 0, count: 64 << 10)
  private var output: [UInt8] = []
  private var sent = 0
  private var pending = Deque<Pending>()
  /// The first ones of `pending` that have timed out. Their replies are dropped when they come.
  private var late = 0
  /// Time-outs since the last reply in time, and when the last was.
  private var timedOut: (count: Int, at: ContinuousClock.Instant)?

  /// Connects, and greets the server. Blocks while its name is looked up, and up to `patience` for
  /// each address.
  ///
  /// - Parameter attempt: the number of attempts so far. Each begins with another address: one that
  ///   accepts connections may not be a Redis that works.
  init(
    _ configuration: RedisConfiguration, _ counters: RedisCounters, attempt: Int = 0
  ) throws(RedisError) {
    self.configuration = configuration
    self.counters = counters
    socket = try Self.connect(to: configuration.address.place, configuration.patience, attempt)
    parser = try ReplyParser(limit: configuration.replyLimit)
    let address = configuration.address
    var commands: [RedisCommand] = []
    if let password = address.password {
      commands.append(
        address.user.map { RedisCommand("AUTH", $0, password) } ?? RedisCommand("AUTH", password))
    }
    if address.database != 0 { commands.append(RedisCommand("SELECT", "\(address.database)")) }
    commands.append(RedisCommand("PING"))
    for command in commands { command.append(to: &output) }
    pending.append(Pending(nil, count: commands.count, time: configuration.patience))
  }

  /// What to wait for.
  var interest: (descriptor: CInt, events: Poll.Events) {
    (socket.value, sent < output.count ? [.readable, .writable] : .readable)
  }

  /// When the first request that has not timed out does.
  var deadline: ContinuousClock.Instant? { late < pending.count ? pending[late].deadline : nil }

  /// Sends a request when the socket takes it.
  func send(_ request: RedisRequest) {
    if configuration.isCounted { counters.sent.add(request.count) }
    pending.append(Pending(request, count: request.count, time: request.time))
    if sent == output.count || sent > 1 << 20 {
      output.removeFirst(sent)
      sent = 0
    }
    output += request.bytes
    // A failure is one of the next `advance`, too.
    try? write()
  }

  /// Writes, reads, and fails the requests whose time is over.
  ///
  /// - Throws: why the connection is useless. `end` has to follow.
  func advance(_ events: Poll.Events, now: ContinuousClock.Instant) throws(RedisError) {
    if events.contains(.writable) { try write() }
    // Before deadlines are looked at: this machine may be the late one.
    if !events.subtracting(.writable).isEmpty { try receive() }
    while let deadline, deadline <= now { try giveUp(now: now) }
  }

  /// Fails the requests in progress.
  func end(_ failure: RedisFailure) {
    for index in late..<pending.count { pending[index].request?.finish(.failure(failure)) }
    pending = Deque()
    late = 0
  }

  // MARK: Connecting

  private static func connect(
    to place: RedisAddress.Place, _ patience: Duration, _ attempt: Int
  ) throws(RedisError) -> OwnedDescriptor {
    switch place {
    case .unix(let path):
      guard let address = UnixAddress(path) else { throw RedisError("the path is too long".utf8) }
      return try open(AF_UNIX, patience) { descriptor in
        address.withSocketAddress { Glibc.connect(descriptor, $0, $1) }
      }
    case .host(let host, let port):
      var hints = addrinfo()
      hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
      var list: UnsafeMutablePointer<addrinfo>?
      // An IP address needs no interface of its family but loopback; `AI_ADDRCONFIG` asks for more.
      hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST
      var status = getaddrinfo(host, "\(port)", &hints, &list)
      if status == EAI_NONAME {
        hints.ai_flags = AI_NUMERICSERV | AI_ADDRCONFIG
        status = getaddrinfo(host, "\(port)", &hints, &list)
      }
      guard status == 0 else {
        throw RedisError("its name: \(String(cString: gai_strerror(status)))".utf8)
      }
      defer { freeaddrinfo(list) }
      var failure = RedisError("no address".utf8)
      var all: [addrinfo] = []
      var next = list
      while let entry = next?.pointee, all.count < 8 {
        all.append(entry)
        next = entry.ai_next
      }
      let first = attempt % max(all.count, 1)
      for entry in all[first...] + all[..<first] {
        do throws(RedisError) {
          return try open(entry.ai_family, patience) {
            Glibc.connect($0, entry.ai_addr, entry.ai_addrlen)
          }
        } catch {
          failure = error
        }
      }
      throw failure
    }
  }

  private static func open(
    _ family: CInt, _ patience: Duration, connecting connect: (CInt) -> CInt
  ) throws(RedisError) -> OwnedDescriptor {
    let kind = CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(family, kind, 0))
    guard socket.value >= 0 else { throw RedisError(errnoText().utf8) }
    var one: CInt = 1
    // Of TCP only, and without it commands are later but not wrong.
    setsockopt(
      socket.value, CInt(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<CInt>.size))
    // connect(2) waits as long as this (socket(7)).
    var time = timeval(tv_sec: max(Int(patience / .seconds(1)), 1), tv_usec: 0)
    setsockopt(
      socket.value, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
    guard connect(socket.value) == 0, fcntl(socket.value, F_SETFL, O_NONBLOCK) == 0 else {
      let isLate = errno == EINPROGRESS || errno == EAGAIN
      throw RedisError((isLate ? "no connection in time" : errnoText()).utf8)
    }
    return socket
  }

  private func greeted(_ replies: [RedisReply]) throws(RedisError) {
    if let error = replies.lazy.compactMap(\.error).first {
      // A server without AUTH repeats its arguments, the password among them.
      let isSecret = configuration.address.password != nil && replies.first?.error != nil
      throw isSecret ? RedisError("AUTH: \(error.kind)".utf8) : error
    }
    guard replies.last == .status("PONG") else { throw RedisError("no PONG".utf8) }
    isReady = true
  }

  // MARK: Bytes

  private func write() throws(RedisError) {
    while sent < output.count {
      let count = output[sent...].withUnsafeBytes {
        Glibc.send(socket.value, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
      }
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else { throw RedisError(errnoText().utf8) }
      sent += count
    }
    output = []
    sent = 0
  }

  private func receive() throws(RedisError) {
    while true {
      let count = recv(socket.value, &buffer, buffer.count, 0)
      if count < 0, errno == EAGAIN { return }
      guard count > 0 else {
        throw RedisError((count == 0 ? "the connection was closed" : errnoText()).utf8)
      }
      try parser.feed(buffer, count: count)
      while let reply = try parser.next() { try take(reply) }
    }
  }

  private func take(_ reply: RedisReply) throws(RedisError) {
    guard !pending.isEmpty else { throw RedisError("a reply without a command".utf8) }
    pending[0].replies.append(reply)
    guard pending[0].replies.count == pending[0].count, let item = pending.popFirst() else {
      return
    }
    guard let request = item.request else { return try greeted(item.replies) }
    guard late == 0 else { return late -= 1 }
    timedOut = nil
    let errors = item.replies.compactMap(\.error)
    counters.errors.add(errors.count)
    request.finish(.success(item.replies))
    if let error = errors.first(where: \.isLasting) { throw error }
  }

  /// Fails the first request that has not timed out. Several time-outs in a row end the connection.
  private func giveUp(now: ContinuousClock.Instant) throws(RedisError) {
    let item = pending[late]
    guard let request = item.request else { throw RedisError("no connection in time".utf8) }
    // Those that were sent before the last time-out are a part of it.
    if timedOut.map({ $0.at < item.sentAt }) ?? true {
      timedOut = ((timedOut?.count ?? 0) + 1, now)
    }
    late += 1
    if configuration.isCounted { counters.timedOut.add(request.count) }
    request.finish(.failure(.timedOut))
    // Once those that are late together are finished.
    if let deadline, deadline <= now { return }
    if let timedOut, timedOut.count >= configuration.timeOuts {
      throw RedisError("no reply in time".utf8)
    }
  }
}
