// ClosedPort: a port of 127.0.0.1 that refuses connections.

import Glibc
import Platform

/// A port that is taken and not listened on, so no other test gets it meanwhile.
public final class ClosedPort: Sendable {
  /// The number of the port.
  public let port: Int
  private let socket: OwnedDescriptor

  /// Takes a free port until the object is released.
  public init() throws {
    socket = OwnedDescriptor(
      owning: Glibc.socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = socket.value
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(descriptor, address, length) == 0 ? getsockname(descriptor, address, &length) : -1
      }
    }
    guard status == 0 else { throw ChildProcess.Failure("no free port: errno \(errno)") }
    port = Int(UInt16(bigEndian: address.sin_port))
  }

  /// Returns the `http` URL of a path at this port.
  public func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }
}
