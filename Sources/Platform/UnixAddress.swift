// UnixAddress: the socket address of a path.

import Glibc

/// The address of a unix socket (unix(7)).
public struct UnixAddress {
  private var address = sockaddr_un()

  /// Creates the address of a path; `nil`, with `errno`, if it is empty or above 107 bytes.
  public init?(_ path: String) {
    address.sun_family = sa_family_t(AF_UNIX)
    let isShort = withUnsafeMutableBytes(of: &address.sun_path) { place in
      guard !path.isEmpty, path.utf8.count < place.count else { return false }
      place.copyBytes(from: path.utf8)
      return true
    }
    guard isShort else {
      errno = ENAMETOOLONG
      return nil
    }
  }

  /// Passes the address to bind(2) or connect(2).
  public func withSocketAddress<Result>(
    _ call: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    withUnsafePointer(to: address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        call($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
