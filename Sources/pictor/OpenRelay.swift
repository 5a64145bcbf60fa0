// OpenRelay: recognizes a server that is open to everyone, and makes the signing policy.

import Core
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

  private static let openRelay =
    "every client may load images of all hosts: set signing.mode or download.allow_hosts, or listen on 127.0.0.1 only"

  private static func isLocal(_ address: ListenAddress) -> Bool {
    switch address {
    case .network(let host, _): IPAddress(numeric: host)?.isLoopback ?? false
    case .unix: true
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
