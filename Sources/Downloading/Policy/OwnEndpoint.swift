// OwnEndpoint: where this server listens itself, so that no download asks it.

import Glibc
import Model
import Platform

/// The server's own listening address, which no origin has.
///
/// It knows the addresses of this machine. One that leads back by way of another machine, such as a load balancer's, is
/// known by `CDN-Loop` alone.
final class OwnEndpoint: Sendable {
  private struct Place {
    var address: IPAddress?
    var port = 0
  }

  private let place = Lock(Place())

  /// Nowhere, to begin with.
  init() {}

  /// From now on, it listens there. Port 0 and what is no numeric address are nowhere.
  func set(address: String, port: Int) {
    let address = IPAddress(address)
    place.withLock { $0 = Place(address: address?.unmapped, port: port) }
  }

  /// Whether a connection to this address would be taken by this server.
  func isReached(by address: IPAddress, port: Int) -> Bool {
    let own = place.withLock { $0 }
    guard let listening = own.address, port == own.port, port != 0 else { return false }
    let address = Self.destination(of: address.unmapped)
    if address == listening { return true }
    switch (listening, address) {
    // Listening on :: takes IPv4 as well.
    case (.v6(0, 0), _), (.v4(0), .v4): return Self.isOfThisMachine(address)
    default: return false
    }
  }

  /// Linux takes a connection to no address in particular to this machine.
  private static func destination(of address: IPAddress) -> IPAddress {
    switch address {
    case .v4(0): .v4(0x7f00_0001)
    case .v6(0, 0): .v6(high: 0, low: 1)
    default: address
    }
  }

  /// Whether this machine has the address now: what it sends there, it sends from there. Nothing is sent to find out.
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

  /// The address that the kernel would send from; connecting a datagram socket only looks that up.
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
