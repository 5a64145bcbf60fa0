// SigningKinds: reads and writes the keys of signatures, and the options of clients without one.

import Model

extension ConfigurationKey {
  /// Signing keys: a list of `id:secret`. Messages name an item by its place, never its text.
  static func signingKeys(
    _ path: String, at field: WritableKeyPath<Configuration, [SigningSettings.Key]> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: "a list of \(SigningSettings.Key.allowed)",
      read: { configuration, value throws(MemberProblems) in
        guard let items = value.list else {
          throw MemberProblems(
            all: [MemberProblem(place: "", description: "a list of \(SigningSettings.Key.allowed)")]
          )
        }
        configuration[keyPath: field] = try SigningSettings.Key.all(in: items)
        return true
      }, write: { literal($0[keyPath: field].map(\.text)) })
  }

  /// Options of clients: a list, or `auto` for what depends on `signing.mode`.
  static func clientOptions(
    _ path: String, at field: WritableKeyPath<Configuration, Set<ClientOption>?> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    let all = ClientOption.allCases.map(\.rawValue)
    return ConfigurationKey(
      path: path, purpose: purpose,
      allowed: "auto, or a list of \(all.joined(separator: ", ")), each once",
      read: { configuration, value in
        if value.text == "auto" {
          configuration[keyPath: field] = nil
          return true
        }
        guard let items = value.list, Set(items).count == items.count else { return false }
        let options = items.compactMap(ClientOption.init(rawValue:))
        configuration[keyPath: field] = Set(options)
        return options.count == items.count
      },
      write: { configuration in
        guard let options = configuration[keyPath: field] else { return quoted("auto") }
        return literal(ClientOption.allCases.filter(options.contains).map(\.rawValue))
      })
  }
}

extension Configuration {
  /// The keys of signed URLs.
  static let signingKeys: [ConfigurationKey] = [
    .choice(
      "signing.mode", \.signing.mode,
      "which requests need a signature: none; those beyond plain sizes and presets; all"),
    .signingKeys(
      "signing.keys", at: \.signing.keys,
      purpose: "keys id:secret of signatures: the first signs, all are accepted; docs/signing.md"
    ),
  ]
}

extension SigningSettings.Key {
  static let allowed =
    "id:secret, at most \(SigningSettings.maximumKeys); id: up to \(longestID) letters, digits, - "
    + "and _, each once; secret: \(secretLengths.lowerBound) to \(secretLengths.upperBound) "
    + "characters without blanks and commas, or env:NAME or file:/path for them"

  /// The key as written in a configuration.
  var text: String { id + ":" + secret.text }

  /// Parses the items of a list.
  fileprivate static func all(in items: [String]) throws(MemberProblems) -> [Self] {
    var keys: [Self] = []
    var problems: [MemberProblem] = []
    for (number, item) in items.enumerated() {
      if let key = key(item), !keys.contains(where: { $0.id == key.id }), number < limit {
        keys.append(key)
      } else {
        problems.append(
          MemberProblem(place: ", item \(number + 1)", description: "not allowed: \(allowed)"))
      }
    }
    guard problems.isEmpty else { throw MemberProblems(all: problems) }
    return keys
  }

  private static let limit = SigningSettings.maximumKeys

  private static func key(_ text: String) -> Self? {
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let id = String(text[..<colon])
    let secret = SecretText(String(text[text.index(after: colon)...]))
    // A reference in place of an item would be a key called `env`, whose secret is public.
    guard (1...longestID).contains(id.utf8.count), Configuration.isName(id),
      id != "env", id != "file", secret.isWellFormed,
      secret.isReference || isSecret(secret.text)
    else { return nil }
    return Self(id: id, secret: secret)
  }

  /// Whether a secret has an allowed length and only allowed characters.
  fileprivate static func isSecret(_ text: String) -> Bool {
    secretLengths.contains(text.utf8.count)
      && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && $0 != 0x2c }
  }
}

extension SigningSettings {
  /// Returns the keys with their secrets, in order. Reads the secrets of references.
  ///
  /// - Throws: `ConfigurationError` for each secret that is missing or not allowed, without it.
  public func secrets(
    environment: [String: String]
  ) throws(ConfigurationError) -> [(id: String, secret: String)] {
    var problems = ConfigurationProblems()
    var found: [(id: String, secret: String)] = []
    for key in keys {
      problems.collect { () throws(ConfigurationError) in
        let place = "signing.keys, \(key.id)"
        let secret = try key.secret.value(environment: environment, at: place)
        guard Key.isSecret(secret) else {
          throw ConfigurationError(
            at: place, "the secret in \(key.secret.text) is not allowed: \(Key.allowed)")
        }
        found.append((key.id, secret))
      }
    }
    try problems.check()
    return found
  }
}
