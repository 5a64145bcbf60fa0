// RedirectingOrigin: an origin on loopback that redirects to any text, for the self-test.

import Glibc
import Model
import Platform

/// An origin that answers every request with a redirect to what its target holds, percent-encoded
/// after `/?`. Serves one connection after the other, on a thread of its own.
final class RedirectingOrigin: Sendable {
  /// The port on 127.0.0.1.
  let port: Int
  private let listener: CInt
  private let thread: OwnThread

  /// Listens on a free port.
  ///
  /// - Throws: `SystemError` if there is no port or no thread.
  init() throws(SystemError) {
    let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard listener >= 0 else { throw SystemError() }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 8) == 0
          && getsockname(listener, address, &length) == 0
      }
    }
    guard isListening else {
      let error = SystemError()
      close(listener)
      throw error
    }
    port = Int(UInt16(bigEndian: address.sin_port))
    self.listener = listener
    thread = try OwnThread(name: "pictor-selftest", rank: .work) {
      while true {
        // The self-test starts no process that could inherit it.
        let connection = accept(listener, nil, nil)
        guard connection >= 0 else {
          if errno == EINTR || errno == ECONNABORTED { continue }
          return
        }
        Self.answer(connection)
        close(connection)
      }
    }
  }

  deinit {
    // Ends the thread's accept(2), which close(2) would not.
    shutdown(listener, CInt(SHUT_RDWR))
    thread.join()
    close(listener)
  }

  /// Returns the URL that redirects to `location`.
  func url(redirectingTo location: String) -> String {
    "http://127.0.0.1:\(port)/?" + PercentEncoding.encode(location)
  }

  private static func answer(_ connection: CInt) {
    var limit = timeval(tv_sec: 5, tv_usec: 0)
    setsockopt(
      connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var head: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4_096)
    while head.count < 32_768, head.suffix(4) != Array("\r\n\r\n".utf8)[...] {
      let count = recv(connection, &piece, piece.count, 0)
      guard count > 0 else { return }
      head += piece[..<count]
    }
    let target = head.split(separator: UInt8(ascii: " ")).dropFirst().first ?? []
    let location = PercentEncoding.decode(target.dropFirst(2)) ?? ""
    let answer = Array(
      "HTTP/1.1 302 Found\r\nLocation: \(location)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
        .utf8)
    _ = send(connection, answer, answer.count, CInt(MSG_NOSIGNAL))
  }
}
