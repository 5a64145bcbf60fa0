// ServerClient: asks the running server, for commands. A blocking HTTP/1.1 client with deadlines.

import Configuring
import Glibc
import Model
import Platform

/// Requests to the server that a configuration describes, each over a connection of its own.
struct ServerClient {
  /// Why there is no answer.
  struct Failure: Error, CustomStringConvertible {
    /// In one line, for whoever gave the command.
    let description: String
  }

  private let address: String
  private let port: Int
  /// An operator's token; `nil` goes without.
  private let token: String?
  /// Seconds for connecting, for each piece sent and for each piece received.
  private let seconds: Int

  /// Longest answer taken, in bytes; the longest there is, with a hundred failures of long URLs, is far below.
  private static let longestAnswer = 16 << 20

  /// A client of the server at the address and port of `configuration`; one on all addresses is asked on loopback.
  init(_ configuration: Configuration.Server, token: String? = nil, seconds: Int) {
    address =
      switch configuration.address {
      case "0.0.0.0": "127.0.0.1"
      case "::": "::1"
      default: configuration.address
      }
    port = configuration.port
    (self.token, self.seconds) = (token, seconds)
  }

  /// Where the server is, as messages say it.
  var place: String { "\(address) port \(port)" }

  /// Sends a request and waits for its answer.
  func request(
    _ method: String, _ target: String, type: String? = nil, body: [UInt8]? = nil
  ) throws(Failure) -> ServerAnswer {
    let socket = try connected()
    var head = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    if let token { head += "Authorization: Bearer \(token)\r\n" }
    if let type { head += "Content-Type: \(type)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    // A server that refuses a request early need not read it to its end; what it says then is the answer.
    let isSent = send(Array((head + "\r\n").utf8) + (body ?? []), over: socket)
    return try answer(over: socket, isSent: isSent)
  }

  private func connected() throws(Failure) -> OwnedDescriptor {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, "\(port)", &hints, &found) == 0, let info = found?.pointee else {
      throw Failure(description: "\(address) is no address")
    }
    defer { freeaddrinfo(found) }
    let socket = OwnedDescriptor(owning: Glibc.socket(info.ai_family, info.ai_socktype, 0))
    guard socket.value >= 0 else { throw Failure(description: "no socket: \(errnoText())") }
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    // The one for sending counts for connecting too (socket(7)).
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(
        socket.value, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    guard connect(socket.value, info.ai_addr, info.ai_addrlen) == 0 else {
      throw Failure(description: "cannot connect to \(place): \(reason())")
    }
    return socket
  }

  private func send(_ bytes: [UInt8], over socket: borrowing OwnedDescriptor) -> Bool {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = rest.withUnsafeBytes {
        Glibc.send(socket.value, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return false }
      rest = rest.dropFirst(count)
    }
    return true
  }

  private func answer(
    over socket: borrowing OwnedDescriptor, isSent: Bool
  ) throws(Failure) -> ServerAnswer {
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while received.count <= Self.longestAnswer {
      let count = recv(socket.value, &buffer, buffer.count, 0)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw Failure(
          description: isSent
            ? "no answer from \(place): \(reason())"
            : "\(place) did not take the request: \(reason())")
      }
      received += buffer[..<count]
      if let answer = ServerAnswer(received, isWhole: count == 0) { return answer }
      guard count > 0 else { break }
    }
    throw Failure(description: "what \(place) answered is no HTTP, or not whole")
  }

  /// What the last call of the system said; of a deadline, more than `errno` does.
  private func reason() -> String {
    [EAGAIN, EINPROGRESS].contains(errno) ? "nothing happened for \(seconds) s" : errnoText()
  }
}

/// An answer of the server.
struct ServerAnswer: Hashable {
  /// The status code.
  let status: Int
  /// The body.
  let body: [UInt8]

  /// Reads the answer at the front of `received`, past interim ones (RFC 9110, section 15.2).
  ///
  /// - Parameter isWhole: whether nothing more will come.
  /// - Returns: `nil` where it is not there yet, or no HTTP. The server gives the length of all that is asked of it here,
  ///   so chunks are none.
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
        // Until the end of the connection (RFC 9112, section 6.3).
        guard isWhole else { return nil }
        (self.status, body) = (status, Array(rest))
        return
      }
      guard rest.count >= length else { return nil }
      (self.status, body) = (status, Array(rest.prefix(length)))
      return
    }
  }
}
