// HTTPClient+Segments: controls how bytes reach the server's socket.

import Glibc

extension HTTPClient {
  /// Collects what `body` sends, and the end of sending, in one segment.
  public func inOneSegment(_ body: () throws -> Void) rethrows {
    setCork(1)
    defer { setCork(0) }
    try body()
  }

  private func setCork(_ value: CInt) {
    var value = value
    setsockopt(
      socket, CInt(IPPROTO_TCP), TCP_CORK, &value, socklen_t(MemoryLayout<CInt>.size))
  }
}
