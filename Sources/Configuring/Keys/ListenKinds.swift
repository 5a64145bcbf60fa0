// ListenKinds: reads and writes addresses to listen on, and the permissions of unix sockets.

import Model

extension ConfigurationKey {
  /// The maximum number of addresses of a listener.
  private static let mostAddresses = 32

  /// The addresses of clients: one, or a list of them.
  static func listenItems(
    _ path: String, at field: WritableKeyPath<Configuration, [ListenItem]> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "numeric addresses such as 0.0.0.0, with a port such as 127.0.0.1:8081 or "
        + "[::1]:8081, or unix: and an absolute path; one, or a list of at most \(mostAddresses)",
      read: { configuration, value in
        let texts = value.list ?? value.text.map { [$0] } ?? []
        let items = texts.compactMap(listenItem)
        guard (1...mostAddresses).contains(texts.count), items.count == texts.count else {
          return false
        }
        configuration[keyPath: field] = items
        return true
      },
      write: { configuration in
        let items = configuration[keyPath: field].map(\.description)
        return items.count == 1 ? quoted(items[0]) : literal(items)
      })
  }

  /// An address alone has the port of `server.port`.
  private static func listenItem(_ text: String) -> ListenItem? {
    if Configuration.isNumericAddress(text) { return .host(text) }
    return text.contains(":") ? ListenAddress(text).map(ListenItem.address) : nil
  }

  /// An address to listen on; empty for none.
  static func listenAddress(
    _ path: String, at field: WritableKeyPath<Configuration, ListenAddress?> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "a port (on 127.0.0.1), a numeric address with a port such as 127.0.0.1:9090 or "
        + "[::1]:9090, unix: and an absolute path, or nothing",
      read: { configuration, value in
        guard let text = value.text ?? value.integer.map(String.init) else { return false }
        let address = ListenAddress(text)
        guard address != nil || text.isEmpty else { return false }
        configuration[keyPath: field] = address
        return true
      }, write: { quoted($0[keyPath: field]?.description ?? "") })
  }

  /// Permissions in octal digits, as in chmod(1).
  static func permissions(
    _ path: String, at field: WritableKeyPath<Configuration, Int> & Sendable, purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: "octal digits in quotes, from \"0600\" to \"0777\"",
      read: { configuration, value in
        guard let text = value.text, (3...4).contains(text.utf8.count),
          text.utf8.allSatisfy({ (0x30...0x37).contains($0) }), let mode = Int(text, radix: 8),
          (0o600...0o777).contains(mode)
        else { return false }
        configuration[keyPath: field] = mode
        return true
      }, write: { quoted("0" + String($0[keyPath: field], radix: 8)) })
  }
}
