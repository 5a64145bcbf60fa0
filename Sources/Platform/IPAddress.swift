// IPAddress: IP addresses and networks as numbers, independent of their spelling.

import Glibc

/// An IPv4 or IPv6 address. An IPv4 address embedded in an IPv6 one stays IPv6; see `embeddedIPv4`.
public enum IPAddress: Hashable, Sendable, CustomStringConvertible {
  /// An IPv4 address in host byte order: 127.0.0.1 is `0x7f00_0001`.
  case v4(UInt32)
  /// An IPv6 address: its first and its last eight bytes.
  case v6(high: UInt64, low: UInt64)

  /// Parses the forms of inet_pton(3): `127.0.0.1`, `::1`. Refuses decimal, octal and short forms,
  /// zones and brackets.
  public init?(_ text: String) {
    var v4 = in_addr()
    var v6 = in6_addr()
    if inet_pton(AF_INET, text, &v4) == 1 {
      self = .v4(UInt32(bigEndian: v4.s_addr))
    } else if inet_pton(AF_INET6, text, &v6) == 1 {
      self.init(v6)
    } else {
      return nil
    }
  }

  /// Parses all numeric forms of getaddrinfo(3), such as `127.1` and zones of IPv6.
  public init?(numeric text: String) {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(text, nil, &hints, &list) == 0, let list else { return nil }
    defer { freeaddrinfo(list) }
    guard let address = list.pointee.ai_addr else { return nil }
    self.init(address, length: Int(list.pointee.ai_addrlen))
  }

  /// Reads a socket address. Returns `nil` for families other than IPv4 and IPv6, or if `length` is
  /// too short.
  ///
  /// - Parameter address: readable for `length` bytes.
  public init?(_ address: UnsafeRawPointer, length: Int) {
    guard length >= MemoryLayout<sa_family_t>.size else { return nil }
    switch CInt(address.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET where length >= MemoryLayout<sockaddr_in>.size:
      self = .v4(UInt32(bigEndian: address.loadUnaligned(as: sockaddr_in.self).sin_addr.s_addr))
    case AF_INET6 where length >= MemoryLayout<sockaddr_in6>.size:
      self.init(address.loadUnaligned(as: sockaddr_in6.self).sin6_addr)
    default:
      return nil
    }
  }

  private init(_ address: in6_addr) {
    (self) = withUnsafeBytes(of: address) { bytes in
      .v6(
        high: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self)),
        low: UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
    }
  }

  /// The IPv4 address of an IPv4-mapped one (RFC 4291, section 2.5.5.2); others as they are.
  public var unmapped: IPAddress {
    guard case .v6(0, let low) = self, low >> 32 == 0xffff else { return self }
    return .v4(UInt32(truncatingIfNeeded: low))
  }

  /// Whether the address is the machine's own (RFC 1122, section 3.2.1.3; RFC 4291, 2.5.3).
  public var isLoopback: Bool {
    switch unmapped {
    case .v4(let value): value >> 24 == 127
    case .v6(let high, let low): high == 0 && low == 1
    }
  }

  /// The IPv4 addresses that a packet to this IPv6 address can end up at, as far as its form tells:
  ///
  /// | Form | Prefix | Source |
  /// | --- | --- | --- |
  /// | mapped | `::ffff:0:0/96` | RFC 4291, section 2.5.5.2 |
  /// | compatible | `::/96` | RFC 4291, section 2.5.5.1 |
  /// | translated | `::ffff:0:0:0/96` | RFC 2765, section 2.1 |
  /// | NAT64 | `64:ff9b::/96` | RFC 6052, section 2.1 |
  /// | NAT64, local use | `64:ff9b:1::/96` of `/48` | RFC 8215 |
  /// | 6to4 | `2002::/16` | RFC 3056, section 2 |
  /// | Teredo: server and client | `2001::/32` | RFC 4380, section 4 |
  /// | ISATAP | any, then `0:5efe` or `200:5efe` | RFC 5214, section 6.1 |
  public var embeddedIPv4: [IPAddress] {
    guard case .v6(let high, let low) = self else { return [] }
    let lowest = UInt32(truncatingIfNeeded: low)
    let above = UInt32(truncatingIfNeeded: low >> 32)
    switch (high, above) {
    case (0, 0) where lowest <= 1: return []
    case (0, 0), (0, 0xffff), (0, 0xffff_0000): return [.v4(lowest)]
    case (0x0064_ff9b_0000_0000, 0), (0x0064_ff9b_0001_0000, 0): return [.v4(lowest)]
    default: break
    }
    var found: [IPAddress] = []
    if high >> 48 == 0x2002 { found.append(.v4(UInt32(truncatingIfNeeded: high >> 16))) }
    if high >> 32 == 0x2001_0000 {
      found += [.v4(UInt32(truncatingIfNeeded: high)), .v4(~lowest)]
    }
    if above & ~0x0200_0000 == 0x0000_5efe { found.append(.v4(lowest)) }
    return found
  }

  /// The IPv4 addresses that `64:ff9b:1::/48`, local NAT64 (RFC 8215), may embed: one for each
  /// length of a prefix, 48 to 96 bits (RFC 6052, section 2.2). Empty for other addresses.
  ///
  /// The bits 64 to 71 are not part of the IPv4 address.
  public var locallyTranslatedIPv4: [IPAddress] {
    guard case .v6(let high, let low) = self, high >> 16 == 0x0064_ff9b_0001 else { return [] }
    let upper = UInt32(truncatingIfNeeded: high)
    let lower = UInt32(truncatingIfNeeded: low >> 24)
    return [
      .v4(upper << 16 | lower >> 16), .v4(upper << 24 | lower >> 8), .v4(lower),
      .v4(UInt32(truncatingIfNeeded: low)),
    ]
  }

  /// The canonical text, as written by inet_ntop(3).
  public var description: String {
    switch self {
    case .v4(let value):
      return "\(value >> 24).\(value >> 16 & 0xff).\(value >> 8 & 0xff).\(value & 0xff)"
    case .v6(let high, let low):
      var bytes = (high.bigEndian, low.bigEndian)
      var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
      guard inet_ntop(AF_INET6, &bytes, &text, socklen_t(text.count)) != nil else { return "?" }
      return String(decoding: text.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    }
  }
}

/// A network: an address and a prefix length.
public struct CIDR: Hashable, Sendable, CustomStringConvertible {
  /// The network's first address.
  public let address: IPAddress
  /// The prefix length in bits: 0–32 for IPv4, 0–128 for IPv6.
  public let prefix: Int

  /// Parses `10.0.0.0/8`, `fd00::/8`, or one address. Refuses bits set after the prefix, such as
  /// `10.1.2.3/8`, because they indicate a mistake.
  public init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard let address = IPAddress(String(parts[0])) else { return nil }
    let width =
      switch address {
      case .v4: 32
      case .v6: 128
      }
    switch parts.count {
    case 1: prefix = width
    case 2:
      guard parts[1].isDigits, let bits = Int(parts[1]), bits <= width else { return nil }
      prefix = bits
    default: return nil
    }
    self.address = address
    guard Self.masked(address, to: prefix) == address else { return nil }
  }

  /// Whether `other` is in this network. IPv4 networks contain no IPv6 addresses, and vice versa.
  public func contains(_ other: IPAddress) -> Bool { Self.masked(other, to: prefix) == address }

  /// Whether every address of this network is in `other`.
  public func isInside(_ other: CIDR) -> Bool {
    prefix >= other.prefix && other.contains(address)
  }

  /// `10.0.0.0/8`.
  public var description: String { "\(address)/\(prefix)" }

  /// Swift shifts by the width or more to 0, so a prefix of 0 needs no special case.
  private static func masked(_ address: IPAddress, to prefix: Int) -> IPAddress {
    switch address {
    case .v4(let value):
      .v4(value & UInt32.max << UInt32(max(32 - prefix, 0)))
    case .v6(let high, let low):
      .v6(
        high: high & UInt64.max << UInt64(max(64 - prefix, 0)),
        low: low & UInt64.max << UInt64(min(max(128 - prefix, 0), 64)))
    }
  }
}
