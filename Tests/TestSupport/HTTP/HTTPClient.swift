// HTTPClient: a small blocking HTTP/1.1 client for tests that check every byte and every close.

import Core
import Glibc

/// An HTTP response.
public struct HTTPAnswer: Sendable {
  /// The status code.
  public let status: Int
  /// The header fields in the order received.
  public let headers: [(name: String, value: String)]
  /// The body, with chunks joined.
  public var body: [UInt8]

  /// Returns the value of a field, matched case-insensitively. Several values are joined by commas;
  /// `nil` if the field is absent.
  public subscript(name: String) -> String? {
    let values = headers.filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    return values.isEmpty ? nil : values.joined(separator: ", ")
  }

  /// The body decoded as UTF-8.
  public var text: String { String(decoding: body, as: UTF8.self) }
}

/// The reason why a client received no response.
public enum HTTPClientError: Error, Hashable {
  /// The connection failed.
  case cannotConnect(errno: CInt)
  /// No data arrived within the time-out.
  case timedOut
  /// The server closed or reset the connection before the response was complete.
  case closed
  /// The data received is not HTTP.
  case malformed(String)
}

/// A connection to a server on 127.0.0.1. Each wait ends after `timeout` seconds, and the last
/// reference closes the connection.
///
///     let client = try HTTPClient(port: server.port)
///     let answer = try client.get("/image?url=…", headers: ["Accept": "image/webp"])
///     #expect(answer.status == 200 && answer["content-type"] == "image/webp")
///
/// Requests follow each other on the same connection. Use `send` and `readAnswer` for pipelining,
/// partial requests and unread responses. Use a client from one thread at a time.
public final class HTTPClient {
  let socket: CInt
  private var isOpen = true
  private var buffer: [UInt8] = []

  /// Connects to the server.
  ///
  /// - Parameters:
  ///   - receiveBuffer: the kernel's receive buffer in bytes, for responses that must block.
  ///   - source: The last number of the client's own address, 127.0.0.n.
  ///   - host: The last number of the server's address, 127.0.0.n.
  public init(
    port: Int, timeout: Int = 60, receiveBuffer: Int? = nil, source: UInt32? = nil,
    host: UInt32 = 1
  ) throws(HTTPClientError) {
    socket = Self.opened(AF_INET, timeout: timeout)
    if let receiveBuffer {
      var size = CInt(receiveBuffer)
      setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<CInt>.size))
    }
    let socket = socket
    func onLoopback(
      _ number: UInt32, port: Int, call: (UnsafePointer<sockaddr>, socklen_t) -> CInt
    ) -> CInt {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(port).bigEndian
      address.sin_addr.s_addr = in_addr_t(0x7f00_0000 + number).bigEndian
      return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          call($0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    }
    let bound = source.map { onLoopback($0, port: 0) { bind(socket, $0, $1) } } ?? 0
    guard bound == 0, onLoopback(host, port: port, call: { connect(socket, $0, $1) }) == 0 else {
      let code = errno
      // Closes exactly once: `deinit` also runs after this throw, when the descriptor may already
      // be reused.
      close()
      throw .cannotConnect(errno: code)
    }
  }

  /// Connects to a unix socket.
  public init(unix path: String, timeout: Int = 60) throws(HTTPClientError) {
    socket = Self.opened(AF_UNIX, timeout: timeout)
    let socket = socket
    let address = UnixAddress(path)
    guard address?.withSocketAddress({ connect(socket, $0, $1) }) == 0 else {
      let code = errno
      close()
      throw .cannotConnect(errno: code)
    }
  }

  private static func opened(_ family: CInt, timeout: Int) -> CInt {
    // Not inherited by programs that other tests start: they would keep the connection open.
    let socket = Glibc.socket(family, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var wait = timeval(tv_sec: timeout, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(socket, SOL_SOCKET, option, &wait, socklen_t(MemoryLayout<timeval>.size))
    }
    return socket
  }

  deinit { close() }

  /// Bytes received so far.
  public private(set) var received = 0

  /// Sends a GET request and reads the response.
  public func get(
    _ target: String, headers: KeyValuePairs<String, String> = [:]
  ) throws(HTTPClientError) -> HTTPAnswer {
    try request("GET", target: target, headers: headers)
  }

  /// Sends a HEAD request and reads the response, which has no body.
  public func head(
    _ target: String, headers: KeyValuePairs<String, String> = [:]
  ) throws(HTTPClientError) -> HTTPAnswer {
    try request("HEAD", target: target, headers: headers)
  }

  /// Sends a request and reads the response.
  public func request(
    _ method: String, target: String, headers: KeyValuePairs<String, String> = [:],
    body: [UInt8]? = nil
  ) throws(HTTPClientError) -> HTTPAnswer {
    try send(Self.text(method, target: target, headers: headers, bodyLength: body?.count))
    if let body { try send(bytes: body) }
    return try readAnswer(hasBody: method != "HEAD")
  }

  /// Returns the header of a request, with `Host` and, for a body, `Content-Length`.
  public static func text(
    _ method: String, target: String, headers: KeyValuePairs<String, String> = [:],
    bodyLength: Int? = nil
  ) -> String {
    var text = "\(method) \(target) HTTP/1.1\r\nHost: test\r\n"
    for (name, value) in headers { text += "\(name): \(value)\r\n" }
    if let bodyLength { text += "Content-Length: \(bodyLength)\r\n" }
    return text + "\r\n"
  }

  /// Sends text unchanged.
  public func send(_ text: String) throws(HTTPClientError) { try send(bytes: Array(text.utf8)) }

  /// Sends bytes unchanged.
  public func send(bytes: [UInt8]) throws(HTTPClientError) {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes { raw in
        // `sent` is less than `bytes.count`, so the buffer is not empty and has an address.
        raw.baseAddress.map {
          Glibc.send(socket, $0 + sent, bytes.count - sent, CInt(MSG_NOSIGNAL))
        } ?? -1
      }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN { throw .timedOut }
      guard count > 0 else { throw .closed }
      sent += count
    }
  }

  /// Reads the next response; skips informational responses.
  public func readAnswer(hasBody: Bool = true) throws(HTTPClientError) -> HTTPAnswer {
    var answer = try readHead()
    while (100..<200).contains(answer.status) { answer = try readHead() }
    guard hasBody, answer.status != 204, answer.status != 304 else { return answer }
    if answer["Transfer-Encoding"]?.lowercased() == "chunked" {
      answer.body = try readChunks()
    } else if let text = answer["Content-Length"] {
      guard let length = Int(text), length >= 0 else { throw .malformed("length \(text)") }
      answer.body = try read(length)
    } else {
      answer.body = try readToEnd()
    }
    return answer
  }

  /// Reads exactly `count` bytes.
  public func read(_ count: Int) throws(HTTPClientError) -> [UInt8] {
    while buffer.count < count {
      guard try fill() else { throw .closed }
    }
    defer { buffer.removeFirst(count) }
    return Array(buffer.prefix(count))
  }

  /// Reads up to a text, and returns what was read, with the text.
  public func read(until end: String) throws(HTTPClientError) -> String {
    var all: [UInt8] = []
    while !all.suffix(end.utf8.count).elementsEqual(end.utf8) { all += try read(1) }
    return String(decoding: all, as: UTF8.self)
  }

  /// Reads until the server closes the connection.
  public func readToEnd() throws(HTTPClientError) -> [UInt8] {
    while try fill() {}
    defer { buffer = [] }
    return buffer
  }

  /// Waits until the server closes or resets the connection; discards everything received.
  public func waitForClose() throws(HTTPClientError) {
    do throws(HTTPClientError) {
      _ = try readToEnd()
    } catch .closed {
      return
    }
  }

  /// Half-closes the connection: stops sending but still reads.
  public func finishSending() { shutdown(socket, CInt(SHUT_WR)) }

  /// Closes the connection immediately.
  public func close() {
    if isOpen { Glibc.close(socket) }
    isOpen = false
  }

  private func readHead() throws(HTTPClientError) -> HTTPAnswer {
    let text = try readLine()
    let parts = text.split(separator: " ", maxSplits: 2)
    guard parts.count >= 2, parts[0].hasPrefix("HTTP/1."), let status = Int(parts[1]) else {
      throw .malformed(text)
    }
    var headers: [(String, String)] = []
    while true {
      let line = try readLine()
      if line.isEmpty { break }
      guard let colon = line.firstIndex(of: ":") else { throw .malformed(line) }
      let value = line[line.index(after: colon)...].drop { $0 == " " }
      headers.append((String(line[..<colon]), String(value)))
    }
    return HTTPAnswer(status: status, headers: headers, body: [])
  }

  private func readChunks() throws(HTTPClientError) -> [UInt8] {
    var body: [UInt8] = []
    while true {
      let line = try readLine()
      guard let size = Int(line.prefix { $0 != ";" }, radix: 16), size >= 0 else {
        throw .malformed(line)
      }
      if size == 0 { break }
      body += try read(size)
      guard try readLine().isEmpty else { throw .malformed("chunk without end") }
    }
    while try !readLine().isEmpty {}
    return body
  }

  private func readLine() throws(HTTPClientError) -> String {
    while true {
      if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
        var line = buffer[..<end]
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        defer { buffer.removeFirst(end + 1) }
        return String(decoding: line, as: UTF8.self)
      }
      guard try fill() else { throw .closed }
    }
  }

  /// Reads the available bytes; returns `false` at the end.
  private func fill() throws(HTTPClientError) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 65_536)
    let count = recv(socket, &chunk, chunk.count, 0)
    if count < 0, errno == EINTR { return true }
    if count < 0, errno == EAGAIN { throw .timedOut }
    guard count >= 0 else { throw .closed }
    buffer += chunk.prefix(count)
    received += count
    return count > 0
  }
}
