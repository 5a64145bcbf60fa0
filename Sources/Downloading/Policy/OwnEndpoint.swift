// OwnEndpoint: the server's own listening addresses, which downloads must not contact.

import Glibc
import Model
import Platform

/// The server's own listening addresses. No origin has one of them.
///
/// It covers the addresses of this machine. An address that leads back through another machine, such as a load
/// balancer, is recognized by `CDN-Loop` only.
final class OwnEndpoint: Sendable {
  private struct Place {
    let address: IPAddress
    let port: Int
    /// Whether the address is `::` for IPv6 only.
    let isIPv6Only: Bool
  }

  private let places = Lock<[Place]>([])

  /// Creates an endpoint that does not listen yet.
  init() {}

  /// Sets the listening addresses. One with port 0, or that is not numeric, counts as none. No download reaches a unix
  /// socket.
  func set(_ addresses: [ListenAddress]) {
    let all = addresses.compactMap { address -> Place? in
      guard let ip = address.ip, let port = address.port else { return nil }
      return Place(address: ip, port: port, isIPv6Only: address.isIPv6Only(beside: addresses))
    }
    places.withLock { $0 = all.filter { $0.port != 0 } }
  }

  /// Whether this server would accept a connection to this address.
  func isReached(by address: IPAddress, port: Int) -> Bool {
    let own = places.withLock { $0 }.filter { $0.port == port }
    guard !own.isEmpty else { return false }
    let address = Self.destination(of: address.unmapped)
    return own.contains { place in
      if address == place.address { return true }
      switch (place.address, address) {
      // A socket on :: also accepts IPv4.
      case (.v6(0, 0), .v4) where place.isIPv6Only: return false
      case (.v6(0, 0), _), (.v4(0), .v4): return Self.isOfThisMachine(address)
      default: return false
      }
    }
  }

  /// Linux connects to this machine if the destination is the unspecified address.
  private static func destination(of address: IPAddress) -> IPAddress {
    switch address {
    case .v4(0): .v4(0x7f00_0001)
    case .v6(0, 0): .v6(high: 0, low: 1)
    default: address
    }
  }

  /// Whether this machine has the address now: the kernel then sends to it from the same address. Sends nothing.
  private static func isOfThisMachine(_ address: IPAddress) -> Bool {
    switch address {
    case .v4(let value) where value >> 24 == 127: return true
    case .v4(let value):
      var there = sockaddr_in()
      there.sin_family = sa_family_t(AF_INET)
      there.sin_port = in_port_t(9).bigEndian
      there.sin_addr.s_addr = value.bigEndian
      return source(towards: there, AF_INET) == address
    case .v6(let high, let low):
      var there = sockaddr_in6()
      there.sin6_family = sa_family_t(AF_INET6)
      there.sin6_port = in_port_t(9).bigEndian
      withUnsafeMutableBytes(of: &there.sin6_addr) { bytes in
        bytes.storeBytes(of: high.bigEndian, toByteOffset: 0, as: UInt64.self)
        bytes.storeBytes(of: low.bigEndian, toByteOffset: 8, as: UInt64.self)
      }
      return source(towards: there, AF_INET6) == address
    }
  }

  /// Returns the address that the kernel would send from. Connecting a datagram socket only looks it up.
  private static func source<Address>(towards address: Address, _ family: CInt) -> IPAddress? {
    let kind = CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue)
    let probe = socket(family, kind, 0)
    guard probe >= 0 else { return nil }
    defer { close(probe) }
    var address = address
    var length = socklen_t(MemoryLayout<Address>.size)
    return withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        guard connect(probe, address, length) == 0, getsockname(probe, address, &length) == 0
        else { return nil }
        return IPAddress(UnsafeRawPointer(address), length: Int(length))
      }
    }
  }
}
