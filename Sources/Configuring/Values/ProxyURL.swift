// ProxyURL: validates and reads the URL of an HTTP proxy.

import FoundationEssentials
import Model

/// Validates URLs of proxies: `http://host:port`, and in a variable or file also
/// `http://user:password@host:port`.
public enum ProxyURL {
  static let allowed =
    "http://host:port, or env:NAME or file:/path for a URL with user and password"

  /// Parses a setting. Returns `nil` if it is invalid: another scheme, no port, or a literal
  /// password.
  static func setting(_ text: String) -> SecretText? {
    let setting = SecretText(text)
    guard setting.isWellFormed else { return nil }
    if setting.isReference { return setting }
    guard let parts = parts(text), parts.user == nil, parts.password == nil else { return nil }
    return setting
  }

  /// Reads the URL of a setting.
  ///
  /// - Throws: `ConfigurationError` at `place` if the URL is missing or invalid. The message does
  ///   not contain the URL.
  public static func url(
    of setting: SecretText, environment: [String: String], at place: String
  ) throws(ConfigurationError) -> String {
    let url = try setting.value(environment: environment, at: place)
    guard parts(url) != nil else {
      throw ConfigurationError(
        at: place, "\(setting.text) is not http://user:password@host:port or http://host:port")
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
