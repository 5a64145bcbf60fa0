// NetworkBinding: binds sockets to IP addresses.

import Glibc
import Model
import Platform

/// Binds sockets to IP addresses.
enum NetworkBinding {
  /// Returns a socket bound to a numeric address. It does not listen yet, so clients are refused.
  ///
  /// - Throws: `invalidAddress`, `cannotListen`, or `addressInUse`.
  static func bound(host: String, port: Int, isIPv6Only: Bool) throws(ServerError)
    -> OwnedDescriptor
  {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    guard (0...65_535).contains(port), getaddrinfo(host, "\(port)", &hints, &list) == 0,
      let found = list?.pointee
    else { throw .invalidAddress("\(host):\(port)") }
    defer { freeaddrinfo(list) }
    let endpoint = "\(ListenAddress(host: host, port: port))"
    let kind = found.ai_socktype | CInt(SOCK_CLOEXEC.rawValue)
    let socket = OwnedDescriptor(owning: Glibc.socket(found.ai_family, kind, 0))
    var one: CInt = 1
    let size = socklen_t(MemoryLayout<CInt>.size)
    guard socket.value >= 0,
      setsockopt(socket.value, SOL_SOCKET, SO_REUSEADDR, &one, size) == 0,
      !isIPv6Only
        || setsockopt(socket.value, CInt(IPPROTO_IPV6), IPV6_V6ONLY, &one, size) == 0,
      bind(socket.value, found.ai_addr, found.ai_addrlen) == 0
    else {
      throw errno == EADDRINUSE
        ? .addressInUse(endpoint: endpoint)
        : .cannotListen(endpoint: endpoint, reason: errnoText())
    }
    return socket
  }
}

/// Whether a listener could have its addresses.
public enum ListenCheck {
  /// Checks an address: it belongs to this machine, and its port or path is free and permitted.
  /// Changes nothing that a client of a running server notices.
  ///
  /// - Parameter others: all addresses of the listener.
  public static func run(
    _ address: ListenAddress, beside others: [ListenAddress]
  ) throws(ServerError) {
    switch address {
    case .network(let host, let port):
      _ = try NetworkBinding.bound(
        host: host, port: port, isIPv6Only: address.isIPv6Only(beside: others))
    case .unix(let path):
      do throws(UnixSocketFile.Failure) {
        try UnixSocketFile.check(path)
      } catch {
        throw error == .inUse
          ? .addressInUse(endpoint: "\(address)")
          : .cannotListen(endpoint: "\(address)", reason: error.reason)
      }
    }
  }
}
