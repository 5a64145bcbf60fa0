// ProxyURL: the address of an HTTP proxy, as it is configured and as it is used.

import FoundationEssentials

/// What can be a proxy's URL: `http://host:port`, in a variable or a file also `http://user:password@host:port`.
public enum ProxyURL {
  static let allowed =
    "http://host:port, or env:NAME or file:/path where a user and password belong to it"

  /// A setting from its text; `nil` where it cannot be a proxy's: another scheme, no port, a password in the open.
  static func setting(_ text: String) -> SecretText? {
    let setting = SecretText(text)
    guard setting.isWellFormed else { return nil }
    if setting.isReference { return setting }
    guard let parts = parts(text), parts.user == nil, parts.password == nil else { return nil }
    return setting
  }

  /// The URL of a setting, read from where it stands.
  ///
  /// - Throws: `ConfigurationError` at `place` where it is missing or no proxy's URL; it repeats nothing of it.
  public static func url(
    of setting: SecretText, environment: [String: String], at place: String
  ) throws(ConfigurationError) -> String {
    let url = try setting.value(environment: environment, at: place)
    guard parts(url) != nil else {
      throw ConfigurationError(
        at: place, "\(setting.text) is no http://user:password@host:port, or http://host:port")
    }
    return url
  }

  private static func parts(_ text: String) -> URLComponents? {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }), let parts = URLComponents(string: text),
      parts.scheme == "http", let host = parts.host, !host.isEmpty,
      let port = parts.port, (1...65_535).contains(port),
      parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil
    else { return nil }
    return parts
  }
}
