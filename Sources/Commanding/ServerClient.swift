// ServerClient: a blocking HTTP/1.1 client for the running server, with a deadline for each
// request.

import Configuring
import Glibc
import Model
import Platform

/// A client of the configured server. Each request has its own connection.
struct ServerClient {
  /// Why there is no answer.
  enum Failure: Error, Equatable, CustomStringConvertible {
    /// The server did not receive the whole request.
    case unsent(String)
    /// The request was sent, so the server may have performed it.
    case unanswered(String)
    /// The request was cancelled by a signal.
    case interrupted

    /// The error as one line for the user.
    var description: String {
      switch self {
      case .unsent(let text), .unanswered(let text): text
      case .interrupted: "interrupted"
      }
    }
  }

  /// What an interruption may cancel.
  enum Patience {
    /// Nothing.
    case full
    /// A request that is not completely sent. The answer to a sent request is awaited.
    case sent(Interruption)
    /// The request at any time.
    case none(Interruption)
  }

  /// The addresses, in the order in which they are tried.
  private let places: [ListenAddress]
  /// The operator whose token is sent, if any.
  private let holder: Operator?

  /// Maximum length of an answer in bytes, far above the longest one, which lists a hundred
  /// failures with long URLs.
  private static let longestAnswer = 16 << 20

  /// Creates a client for the operators' listener of `configuration`, or its only listener. A
  /// server on all addresses is reached over loopback, else at the first address that accepts.
  init(_ configuration: ServerSettings, as holder: Operator? = nil) {
    places = Self.places(of: configuration).map(\.reachable)
    self.holder = holder
  }

  /// Why the configuration does not tell where the server listens; `nil` if it does.
  static func problem(of configuration: ServerSettings) -> String? {
    guard places(of: configuration).allSatisfy({ $0.port == 0 }) else { return nil }
    let advice = "set it to the port the server listens on"
    return configuration.operatorAddress == nil
      ? "server.port is 0: \(advice)" : "the port of server.operator_address is 0: \(advice)"
  }

  /// The addresses of the listener that is used. Those with port 0 are last: no server is there.
  private static func places(of configuration: ServerSettings) -> [ListenAddress] {
    let all = configuration.operatorAddress.map { [$0] } ?? configuration.clientAddresses
    return all.filter { $0.port != 0 } + all.filter { $0.port == 0 }
  }

  /// The name of the operator whose token is sent; empty without a token.
  var operatorName: String { holder?.name ?? "" }

  /// The server's address as shown in messages; the first of several.
  var serverName: String { places.first.map(Self.name) ?? "" }

  private static func name(of place: ListenAddress) -> String {
    switch place {
    case .network(let host, let port): "\(host) port \(port)"
    case .unix: place.description
    }
  }

  /// Sends a request and waits for its answer.
  ///
  /// - Parameters:
  ///   - seconds: the deadline for everything, from the connection to the answer's last byte.
  ///   - patience: the steps that an interruption may cancel.
  func request(
    _ method: String, target: String, type: String? = nil, body: [UInt8]? = nil, seconds: Int,
    patience: Patience = .full
  ) throws(Failure) -> ServerAnswer {
    let wait = Wait(end: .now + .seconds(seconds), seconds: seconds, patience: patience)
    let socket = try connected(wait)
    var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if let holder { head += "Authorization: Bearer \(holder.token)\r\n" }
    if let type { head += "Content-Type: \(type)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    return try answer(to: Array((head + "\r\n").utf8) + (body ?? []), over: socket, wait)
  }

  /// Connects to the first address that accepts.
  private func connected(_ wait: Wait) throws(Failure) -> OwnedDescriptor {
    var reasons: [String] = []
    for place in places {
      do throws(Failure) {
        return try connected(to: place, wait)
      } catch {
        guard case .unsent(let reason) = error else { throw error }
        reasons.append(reason)
      }
    }
    throw .unsent(reasons.joined(separator: "; "))
  }

  private func connected(
    to place: ListenAddress, _ wait: Wait
  ) throws(Failure) -> OwnedDescriptor {
    switch place {
    case .network(let host, let port):
      var hints = addrinfo()
      hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
      hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
      var found: UnsafeMutablePointer<addrinfo>?
      guard getaddrinfo(host, "\(port)", &hints, &found) == 0, let info = found?.pointee else {
        throw .unsent("\(host) is not an IP address")
      }
      defer { freeaddrinfo(found) }
      return try connected(Self.name(of: place), info.ai_family, wait) {
        connect($0, info.ai_addr, info.ai_addrlen)
      }
    case .unix(let path):
      guard let address = UnixAddress(path) else {
        throw .unsent("cannot connect to \(place): \(errnoText())")
      }
      return try connected(Self.name(of: place), AF_UNIX, wait) { socket in
        address.withSocketAddress { connect(socket, $0, $1) }
      }
    }
  }

  private func connected(
    _ name: String, _ family: CInt, _ wait: Wait, by connect: (CInt) -> CInt
  ) throws(Failure) -> OwnedDescriptor {
    let type = CInt(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(family, type, 0))
    guard socket.value >= 0 else { throw .unsent("cannot create a socket: \(errnoText())") }
    guard connect(socket.value) != 0 else { return socket }
    var status = errno
    if status == EINPROGRESS {
      guard !(try wait.ready(socket.value, for: .writable, isSent: false).isEmpty) else {
        throw .unsent("cannot connect to \(name) within \(wait.seconds) s")
      }
      var length = socklen_t(MemoryLayout<CInt>.size)
      getsockopt(socket.value, SOL_SOCKET, SO_ERROR, &status, &length)
    }
    guard status == 0 else {
      throw .unsent("cannot connect to \(name): \(errnoText(status))")
    }
    return socket
  }

  /// Sends and receives at the same time. A server may refuse a request before it has read all of
  /// it; that refusal is the answer.
  private func answer(
    to request: [UInt8], over socket: borrowing OwnedDescriptor, _ wait: Wait
  ) throws(Failure) -> ServerAnswer {
    var unsent = request[...]
    // Whether the server still accepts data.
    var isTaken = true
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while received.count <= Self.longestAnswer {
      let isSent = unsent.isEmpty
      let wanted: Poll.Events = isSent || !isTaken ? .readable : [.readable, .writable]
      let ready = try wait.ready(socket.value, for: wanted, isSent: isSent)
      guard !ready.isEmpty else {
        throw isSent
          ? .unanswered("no response from \(serverName) within \(wait.seconds) s")
          : .unsent("\(serverName) did not accept the request within \(wait.seconds) s")
      }
      if ready != .writable {
        let count = recv(socket.value, &buffer, buffer.count, 0)
        if count < 0, [EINTR, EAGAIN].contains(errno) { continue }
        guard count >= 0 else {
          throw isSent
            ? .unanswered("no response from \(serverName): \(errnoText())")
            : .unsent("\(serverName) did not accept the request: \(errnoText())")
        }
        received += buffer[..<count]
        if let answer = ServerAnswer(received, isWhole: count == 0) { return answer }
        guard count > 0 else { break }
      } else {
        let count = unsent.withUnsafeBytes {
          Glibc.send(socket.value, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
        }
        if count > 0 { unsent = unsent.dropFirst(count) }
        if count < 0, ![EINTR, EAGAIN].contains(errno) { isTaken = false }
      }
    }
    let text = "the response of \(serverName) is not HTTP or is incomplete"
    throw unsent.isEmpty ? .unanswered(text) : .unsent(text)
  }

  /// The deadline and the interruption of one request.
  private struct Wait {
    let end: ContinuousClock.Instant
    /// The whole time in seconds, for messages.
    let seconds: Int
    let patience: Patience

    /// Waits for events of the socket. Returns none at the deadline.
    func ready(
      _ socket: CInt, for events: Poll.Events, isSent: Bool
    ) throws(Failure) -> Poll.Events {
      let interruption: CInt =
        switch patience {
        case .full: -1
        case .sent(let interruption): isSent ? -1 : interruption.descriptor
        case .none(let interruption): interruption.descriptor
        }
      var watched = Poll([(interruption, .readable), (socket, events)])
      while !watched.wait(until: end) {
        guard end > .now else { return [] }
      }
      if !watched.events(of: 0).isEmpty { throw .interrupted }
      return watched.events(of: 1)
    }
  }
}

/// An answer of the server.
struct ServerAnswer: Hashable {
  /// The status code.
  let status: Int
  /// The body.
  let body: [UInt8]

  /// Parses the answer at the start of `received`, after interim answers (RFC 9110, section 15.2).
  ///
  /// - Parameter isWhole: whether the connection has ended.
  /// - Returns: `nil` if the answer is incomplete or is not HTTP. Chunked encoding is not
  ///   supported, because the server states the length of all these answers.
  init?(_ received: [UInt8], isWhole: Bool) {
    var rest = received[...]
    while true {
      guard let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
      let lines = String(decoding: rest[..<end.lowerBound], as: UTF8.self).split(
        separator: "\r\n")
      let words = lines.first?.split(separator: " ") ?? []
      guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else {
        return nil
      }
      rest = rest[end.upperBound...]
      if (100..<200).contains(status) { continue }
      let length = lines.dropFirst().lazy.compactMap { line -> Int? in
        let parts = line.split(separator: ":", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
        return Int(parts[1].drop { $0 == " " })
      }.first
      guard let length, length >= 0 else {
        // The body ends with the connection (RFC 9112, section 6.3).
        guard isWhole else { return nil }
        self.status = status
        body = Array(rest)
        return
      }
      guard rest.count >= length else { return nil }
      self.status = status
      body = Array(rest.prefix(length))
      return
    }
  }
}
