// HostRuleConfigurations: converts host rules to the settings of cache keys, freshness and
// downloads.

import Caching
import Configuring
import Downloading
import Model

extension CacheKeyFilter {
  init(_ rules: [Configuration.HostRule]) {
    self.init(
      rules: rules.map {
        KeyRule(
          host: $0.host, parameters: $0.parameters, tags: $0.tags,
          forwardedHeaders: $0.forwardHeaders)
      })
  }
}

extension FreshnessRule {
  init(_ rule: Configuration.HostRule) {
    self.init(host: rule.host)
    defaultLifetime = rule.freshness.defaultLifetime?.wholeSeconds
    heuristicLifetime = rule.freshness.heuristicLifetime?.wholeSeconds
    clientDefault = rule.freshness.clientDefault?.wholeSeconds
    minimumLifetime = rule.freshness.minimumLifetime?.wholeSeconds
    maximumLifetime = rule.freshness.maximumLifetime?.wholeSeconds
    staleWhileRevalidate = rule.freshness.staleWhileRevalidate?.wholeSeconds
    staleIfError = rule.freshness.staleIfError?.wholeSeconds
    keepsCookies = rule.cookies
  }
}

extension HostRule {
  /// Creates a download rule and resolves its secrets.
  ///
  /// - Parameter place: the prefix that names the rule in error messages.
  /// - Throws: `ConfigurationError` if a secret is missing or no request can carry it.
  init(
    _ rule: Configuration.HostRule, environment: [String: String], at place: String
  ) throws(ConfigurationError) {
    self.init(host: rule.host)
    func secret(_ text: SecretText, _ member: String) throws(ConfigurationError) -> String {
      try text.value(environment: environment, at: "\(place), \(member)")
    }
    for (name, text) in rule.headers.sorted(by: { $0.key < $1.key }) {
      guard let field = HeaderField(name, try secret(text, "headers")) else {
        throw ConfigurationError(at: "\(place), headers", "\(name) cannot have this value")
      }
      if text.isReference { secretHeaders.append(field) } else { headers.append(field) }
    }
    if let user = rule.user, let password = rule.password {
      guard let field = HeaderField(user: user, password: try secret(password, "password")) else {
        throw ConfigurationError(at: "\(place), password", "it holds a control character")
      }
      secretHeaders.append(field)
    }
    if let token = rule.token {
      guard let field = HeaderField(bearer: try secret(token, "token")) else {
        throw ConfigurationError(at: "\(place), token", "it holds a blank or what is not ASCII")
      }
      secretHeaders.append(field)
    }
    droppedHeaders = rule.dropHeaders
    forwardedHeaders = rule.forwardHeaders
    keepsCookies = rule.cookies
    allowsInvalidCertificates = rule.allowInvalidCertificates
    switch rule.proxy {
    case .none: proxy = .standard
    case .direct: proxy = .direct
    case .url(let url):
      proxy = .url(try ProxyURL.url(of: url, environment: environment, at: "\(place), proxy"))
    }
  }
}
