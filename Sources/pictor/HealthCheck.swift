// HealthCheck: asks a running server for its health, for containers that have no curl.

import Configuring
import Glibc

/// `GET /stats` with a deadline; serving is 200.
struct HealthCheck {
  private let address: String
  private let port: Int
  /// Seconds for connecting, sending and receiving, each.
  private let deadline = 3

  /// A check of the server that `configuration` describes; a server on all addresses is asked on loopback.
  init(_ configuration: Configuration.Server) {
    address =
      switch configuration.address {
      case "0.0.0.0": "127.0.0.1"
      case "::": "::1"
      default: configuration.address
      }
    port = configuration.port
  }

  /// The exit status: 0 when the server is serving, 1 with a line on standard error otherwise.
  func run() -> CInt {
    guard let status = askedStatus() else {
      Program.complain("no answer from \(address) port \(port)")
      return 1
    }
    guard status == "200" else {
      Program.complain("the server at \(address) port \(port) answered \(status)")
      return 1
    }
    return 0
  }

  /// The status code of the answer as text; `nil` where there is none in time.
  private func askedStatus() -> String? {
    var hints = addrinfo()
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV
    var found: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, "\(port)", &hints, &found) == 0, let info = found?.pointee else {
      return nil
    }
    defer { freeaddrinfo(found) }
    let socket = socket(info.ai_family, info.ai_socktype, 0)
    guard socket >= 0 else { return nil }
    defer { close(socket) }
    var limit = timeval(tv_sec: deadline, tv_usec: 0)
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
      setsockopt(socket, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    guard connect(socket, info.ai_addr, info.ai_addrlen) == 0 else { return nil }
    let request = "GET /stats HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    guard send(socket, request, request.utf8.count, CInt(MSG_NOSIGNAL)) > 0 else {
      return nil
    }
    // `HTTP/1.1 200 OK`: the status line comes in one piece, being the first bytes of a small answer.
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = recv(socket, &buffer, buffer.count, 0)
    guard count > 0 else { return nil }
    let words = String(decoding: buffer[..<count], as: UTF8.self).split(separator: " ")
    return words.count > 1 ? String(words[1]) : nil
  }
}
