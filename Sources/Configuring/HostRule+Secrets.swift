// HostRule+Secrets: resolves what a host rule's configuration refers to.

import Model

extension HostRule {
  /// Returns the rule with its header fields and its proxy, made of what is `written`. Reads
  /// secrets.
  ///
  /// - Parameter place: the prefix that names the rule in error messages.
  /// - Throws: `ConfigurationError` if a secret is missing or no request can carry it.
  public func resolved(
    environment: [String: String], at place: String
  ) throws(ConfigurationError) -> HostRule {
    var rule = self
    func secret(_ text: SecretText, for member: String) throws(ConfigurationError) -> String {
      try text.value(environment: environment, at: "\(place), \(member)")
    }
    for (name, text) in written.headers.sorted(by: { $0.key < $1.key }) {
      guard let field = HeaderField(name, value: try secret(text, for: "headers")) else {
        throw ConfigurationError(at: "\(place), headers", "\(name) has an invalid value")
      }
      if text.isReference { rule.secretHeaders.append(field) } else { rule.headers.append(field) }
    }
    if let user = written.user, let password = written.password {
      guard let field = HeaderField(user: user, password: try secret(password, for: "password"))
      else {
        throw ConfigurationError(at: "\(place), password", "it contains a control character")
      }
      rule.secretHeaders.append(field)
    }
    if let token = written.token {
      guard let field = HeaderField(bearer: try secret(token, for: "token")) else {
        throw ConfigurationError(
          at: "\(place), token", "it contains a space or a non-ASCII character")
      }
      rule.secretHeaders.append(field)
    }
    if let store { rule.storeCredentials = try store.credentials(secret) }
    switch written.proxy {
    case .none: rule.proxy = .standard
    case .direct: rule.proxy = .direct
    case .url(let url):
      rule.proxy = .url(
        try ProxyURL.url(of: url, environment: environment, at: "\(place), proxy"))
    }
    return rule
  }
}
