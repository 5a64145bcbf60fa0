// HTTPClient+Segments: controls how bytes reach the server's socket.

import Glibc

extension HTTPClient {
  /// Collects what `body` sends, and the end of sending, in one segment.
  public func inOneSegment(_ body: () throws -> Void) rethrows {
    setCork(1)
    defer { setCork(0) }
    try body()
  }

  /// Sends bytes past TLS.
  public func sendPlain(_ bytes: [UInt8]) throws(HTTPClientError) {
    guard Glibc.send(socket, bytes, bytes.count, CInt(MSG_NOSIGNAL)) == bytes.count else {
      throw .closed
    }
  }

  private func setCork(_ value: CInt) {
    var value = value
    setsockopt(
      socket, CInt(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<CInt>.size))
  }
}
