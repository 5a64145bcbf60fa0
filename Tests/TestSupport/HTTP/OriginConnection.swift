// OriginConnection and OriginSocket: one connection of a test origin, on blocking sockets.

import Glibc

/// Reads requests and performs the steps of their replies until either side closes.
struct OriginConnection {
  private enum End: Error {
    case clientGone
    case asTold
  }

  private let descriptor: CInt
  private let number: Int
  private let state: OriginState

  init(_ descriptor: CInt, number: Int, state: OriginState) {
    self.descriptor = descriptor
    self.number = number
    self.state = state
  }

  func run() {
    var buffer: [UInt8] = []
    while let head = readHead(&buffer) {
      guard let (request, reply) = begin(head, &buffer) else { return }
      do {
        for step in (reply?(request) ?? .status(404)).steps { try take(step) }
        state.finish(isGone: false)
      } catch {
        if case End.clientGone = error {
          state.finish(isGone: true)
        } else {
          state.finish(isGone: false)
        }
        return
      }
    }
  }

  private func begin(
    _ head: String, _ buffer: inout [UInt8]
  ) -> (Origin.Request, (@Sendable (Origin.Request) -> OriginReply)?)? {
    let lines = head.split(separator: "\r\n")
    let words = lines.first?.split(separator: " ") ?? []
    guard words.count == 3 else { return nil }
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      let name = line[..<colon].lowercased()
      let value = String(line[line.index(after: colon)...].drop { $0 == " " })
      headers[name] = headers[name].map { $0 + ", " + value } ?? value
    }
    guard let body = readBody(headers["content-length"].flatMap { Int($0) } ?? 0, &buffer) else {
      return nil
    }
    let target = String(words[1])
    let path = String(target.prefix { $0 != "?" })
    return state.begin(
      { count in
        Origin.Request(
          method: String(words[0]), path: path, target: target, headers: headers, body: body,
          number: count, connection: number)
      }, path: path)
  }

  /// Returns the body of a request; `nil` if it is too long or cut off. Chunked bodies are not
  /// supported.
  private func readBody(_ length: Int, _ buffer: inout [UInt8]) -> [UInt8]? {
    guard (0...16 << 20).contains(length) else { return nil }
    while buffer.count < length {
      var piece = [UInt8](repeating: 0, count: 64 << 10)
      let count = recv(descriptor, &piece, piece.count, 0)
      guard count > 0 else { return nil }
      buffer += piece[..<count]
    }
    defer { buffer.removeFirst(length) }
    return Array(buffer.prefix(length))
  }

  /// Returns the head of the next request; `nil` if there are no more.
  private func readHead(_ buffer: inout [UInt8]) -> String? {
    while true {
      let text = String(decoding: buffer, as: UTF8.self)
      if let range = text.firstRange(of: "\r\n\r\n") {
        buffer.removeFirst(text[..<range.upperBound].utf8.count)
        return String(text[..<range.lowerBound])
      }
      var piece = [UInt8](repeating: 0, count: 4_096)
      let count = recv(descriptor, &piece, piece.count, 0)
      guard count > 0, buffer.count < 1 << 20 else { return nil }
      buffer += piece[..<count]
      // A TLS client starts with a handshake record (0x16); a server without TLS replies in plain
      // text.
      if buffer.first == 0x16 {
        try? send(OriginReply.head(400, headers: ["Content-Length: 0"]))
        return nil
      }
    }
  }

  private func take(_ step: OriginReply.Step) throws {
    switch step {
    case .send(let bytes):
      try send(bytes)
    case .hold(let gate):
      while !gate.isOpen { try waitForClient(milliseconds: 2) }
    case .sendForever(let bytes):
      while true { try send(bytes) }
    case .trickle(let bytes, let milliseconds):
      for byte in bytes {
        try send([byte])
        try waitForClient(milliseconds: milliseconds)
      }
    case .drip(let bytes, let milliseconds):
      while true {
        try send(bytes)
        try waitForClient(milliseconds: milliseconds)
      }
    case .silence:
      while true { try waitForClient(milliseconds: 1_000) }
    case .close:
      // The client may still be sending; a plain close would then reset the connection.
      shutdown(descriptor, CInt(SHUT_WR))
      throw End.asTold
    case .reset:
      var option = linger(l_onoff: 1, l_linger: 0)
      setsockopt(
        descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
      throw End.asTold
    }
  }

  private func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(
          descriptor, $0.baseAddress.map { $0 + sent }, bytes.count - sent, CInt(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw End.clientGone }
      sent += count
    }
  }

  /// Waits for the given time; throws if the client closes its side or the origin stops.
  private func waitForClient(milliseconds: Int) throws {
    // POLLRDHUP (0x2000): the peer has shut down its sending half (poll(2)).
    let closed = Int16(0x2000)
    var watched = pollfd(fd: descriptor, events: closed, revents: 0)
    let ready = poll(&watched, 1, CInt(milliseconds))
    let ended = closed | Int16(POLLHUP) | Int16(POLLERR)
    if ready > 0, watched.revents & ended != 0 { throw End.clientGone }
    if state.isStopped { throw End.asTold }
  }
}

/// The calls of the socket interface, with their C types.
enum OriginSocket {
  /// Returns a socket that is bound to a port and does not listen; 0 for any free port.
  static func bind(to address: String, port: Int) throws -> (descriptor: CInt, port: Int) {
    let isIPv6 = address.contains(":")
    let descriptor = socket(
      isIPv6 ? AF_INET6 : AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    // Two sockets may have the port while neither listens, and while a stopped origin's last
    // connections are in TIME_WAIT (socket(7)).
    var isReused: CInt = 1
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &isReused, socklen_t(MemoryLayout<CInt>.size))
    var name = sockaddr_storage()
    var length: socklen_t
    if isIPv6 {
      var ip = sockaddr_in6()
      ip.sin6_family = sa_family_t(AF_INET6)
      ip.sin6_port = UInt16(port).bigEndian
      inet_pton(AF_INET6, address, &ip.sin6_addr)
      length = socklen_t(MemoryLayout<sockaddr_in6>.size)
      withUnsafeMutableBytes(of: &name) { $0.storeBytes(of: ip, as: sockaddr_in6.self) }
    } else {
      var ip = sockaddr_in()
      ip.sin_family = sa_family_t(AF_INET)
      ip.sin_port = UInt16(port).bigEndian
      inet_pton(AF_INET, address, &ip.sin_addr)
      length = socklen_t(MemoryLayout<sockaddr_in>.size)
      withUnsafeMutableBytes(of: &name) { $0.storeBytes(of: ip, as: sockaddr_in.self) }
    }
    let result = withUnsafeMutablePointer(to: &name) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
        Glibc.bind(descriptor, name, length) == 0
          && getsockname(descriptor, name, &length) == 0
      }
    }
    guard result else {
      let text = String(cString: strerror(errno))
      close(descriptor)
      throw OriginError(description: "an origin on \(address): \(text)")
    }
    // The port has the same offset in both kinds of address.
    let port = withUnsafeBytes(of: name) {
      UInt16(bigEndian: $0.loadUnaligned(fromByteOffset: 2, as: UInt16.self))
    }
    return (descriptor, Int(port))
  }

  static func accept(_ listener: CInt) -> CInt? {
    while true {
      let descriptor = Glibc.accept(listener, nil, nil)
      if descriptor < 0 && (errno == EINTR || errno == ECONNABORTED) { continue }
      guard descriptor >= 0 else { return nil }
      // Not inherited by programs that other tests start: they would keep the connection open.
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      return descriptor
    }
  }

  static func detachThread(_ body: @escaping @Sendable () -> Void) {
    final class Box: Sendable {
      let body: @Sendable () -> Void
      init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 512 << 10)
    defer { pthread_attr_destroy(&attributes) }
    var thread = pthread_t()
    // Released by the thread as its first action, or below if no thread was created.
    let box = Unmanaged.passRetained(Box(body))
    let status = pthread_create(
      &thread, &attributes,
      { pointer in
        if let pointer { Unmanaged<Box>.fromOpaque(pointer).takeRetainedValue().body() }
        return nil
      }, box.toOpaque())
    if status != 0 { box.release() }
  }
}
