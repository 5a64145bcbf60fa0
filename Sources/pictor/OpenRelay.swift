// OpenRelay: recognizes a server that is open to everyone, and makes the signing policy.

import Core
import Glibc
import Serving

extension PartConfigurations {
  /// Whether every client of another machine can have every image of the web loaded: the server
  /// listens beyond loopback, needs no signature and has no list of hosts.
  var isOpenRelay: Bool {
    server.signing.mode == .off && downloader.hosts.allowed.isEmpty
      && !server.clientAddresses.allSatisfy(Self.isLocal)
  }

  /// Whether every client of another machine can read the figures: there is no listener for
  /// operators, and the server listens beyond loopback.
  var showsFigures: Bool {
    server.operatorAddresses.isEmpty && !server.clientAddresses.allSatisfy(Self.isLocal)
  }

  /// What the operator should know of the configuration.
  var openDoors: [String] {
    (isOpenRelay ? [Self.openRelay] : []) + (showsFigures ? [Self.openFigures] : [])
  }

  private static let openFigures =
    "every client may read /stats and /metrics: set server.operator_address, or listen on 127.0.0.1 only"

  /// The warning.
  private static let openRelay =
    "every client may load images of all hosts: set signing.mode or download.allow_hosts, or listen on 127.0.0.1 only"

  private static func isLocal(_ address: ListenAddress) -> Bool {
    switch address {
    case .network(let host, _): isLoopback(host)
    case .unix: true
    }
  }

  /// Whether only this machine reaches an address (RFC 1122, section 3.2.1.3; RFC 4291, 2.5.3).
  static func isLoopback(_ address: String) -> Bool {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    var list: UnsafeMutablePointer<addrinfo>?
    guard getaddrinfo(address, nil, &hints, &list) == 0, let list else { return false }
    defer { freeaddrinfo(list) }
    guard let socket = list.pointee.ai_addr else { return false }
    switch list.pointee.ai_family {
    case AF_INET:
      // The address family says that it is one.
      return socket.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
        UInt32(bigEndian: $0.pointee.sin_addr.s_addr) >> 24 == 127
      }
    case AF_INET6:
      // The same.
      return socket.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
        withUnsafeBytes(of: $0.pointee.sin6_addr) { bytes in
          let mapped: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127]
          return bytes.dropLast().allSatisfy { $0 == 0 } && bytes[15] == 1
            || bytes.starts(with: mapped)
        }
      }
    default: return false
    }
  }
}

extension SigningSettings {
  /// Returns the policy with the secrets of its keys.
  ///
  /// - Throws: `ConfigurationError` if a secret cannot be used, or a needed key is missing.
  func policy(environment: [String: String]) throws(ConfigurationError) -> SigningPolicy {
    guard mode == .off || !keys.isEmpty else {
      throw ConfigurationError(
        at: "signing.mode", "'\(mode.rawValue)' is not allowed without signing.keys")
    }
    let keys = try secrets(environment: environment).map {
      SigningKey(id: $0.id, secret: $0.secret)
    }
    return SigningPolicy(mode: mode, keys: keys)
  }
}
