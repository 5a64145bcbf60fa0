// SecretKinds: settings that may be secrets or refer to them, and how references are resolved.

import FoundationEssentials

extension SecretText {
  /// Maximum size of a file with a secret, in bytes.
  private static let longestFile = 64 << 10

  /// Returns the text, or the text that the reference names.
  ///
  /// - Throws: `ConfigurationError` at `place` if the text is missing or empty. The message never
  ///   contains a secret.
  public func value(
    environment: [String: String], at place: String
  ) throws(ConfigurationError) -> String {
    let value: String
    switch self {
    case .literal(let text): return text
    case .environment(let name):
      guard let found = environment[name] else {
        throw ConfigurationError(at: place, "the environment variable \(name) is not set")
      }
      value = found
    case .file(let path):
      do throws(FileProblem) {
        value = try textOfFile(path, limit: Self.longestFile)
      } catch {
        throw ConfigurationError(at: place, "'\(path)' \(error.description)")
      }
    }
    // By bytes, because CR LF is a single `Character`.
    let end = value.utf8.lastIndex { $0 != 0x0a && $0 != 0x0d }
    guard let end else { throw ConfigurationError(at: place, "\(text) is empty") }
    return String(value[...end])
  }
}

extension ValueKind<SecretText> {
  /// A reference, or a literal text that `isLiteral` accepts.
  private static func secret(
    _ allowed: String, literal isLiteral: @escaping @Sendable (String) -> Bool
  ) -> ValueKind {
    ValueKind(
      allowed: allowed, isSecret: true,
      read: { value in
        guard let text = value.text else { return nil }
        let secret = SecretText(text)
        return secret.isWellFormed && (secret.isReference || isLiteral(text)) ? secret : nil
      }, write: { JSON5.quoted($0.text) })
  }

  static var reference: ValueKind {
    secret(
      "env:NAME or file:/path, because a configuration may not contain secrets"
    ) { _ in false }
  }

  static var accessKey: ValueKind {
    secret("an access key, env:NAME or file:/path") {
      AWSCredentials(accessKey: $0, secretKey: "-") != nil
    }
  }

  static var redis: ValueKind {
    secret(
      RedisAddress.allowed + " without a password, or env:NAME or file:/path"
    ) { RedisAddress($0).map { $0.password == nil } ?? false }
  }

  /// An operator's token.
  static var token: ValueKind {
    ValueKind(
      allowed: OperatorToken.allowedSecret, isSecret: true,
      read: { value throws(MemberProblems) in
        // The beginning of JSON5 that cannot be read would otherwise become part of a token.
        if case .argument(let text) = value, let first = text.first, "[{\"'".contains(first) {
          return nil
        }
        return try secret("", literal: OperatorToken.isSecret).read(value)
      }, write: { JSON5.quoted($0.text) })
  }

  /// The URL of a proxy. User and password are allowed only in a reference.
  static var proxy: ValueKind {
    secret(ProxyURL.allowed) { text in
      ProxyURL.parts(text).map { $0.user == nil && $0.password == nil } ?? false
    }
  }
}

extension ValueKind<[String: SecretText]> {
  /// Header fields by name. Messages do not repeat values.
  private static func fields(
    _ allowed: String, where isAllowed: @escaping @Sendable (String, SecretText) -> Bool
  ) -> ValueKind {
    ValueKind(
      allowed: allowed, isSecret: true, schema: #""type": "object""#,
      read: { value throws(MemberProblems) in
        guard let members = value.map?.mapValues({ SecretText($0) }) else { return nil }
        let wrong = members.filter { name, secret in
          let isSendable = secret.isReference || HeaderField(name, value: secret.text) != nil
          return !isAllowed(name, secret) || !secret.isWellFormed || !isSendable
        }
        guard wrong.isEmpty else {
          throw MemberProblems(
            wrong.keys.sorted().map {
              MemberProblem(at: "." + $0, "not allowed: \(allowed)")
            })
        }
        return members
      }, write: { JSON5.object($0.mapValues(\.text)) })
  }

  /// Header fields for a collector, but for those that the exporter and curl set.
  static var collectorFields: ValueKind {
    fields(
      "an object of header fields with literal values, env:NAME or file:/path; no fields for framing"
    ) { name, _ in
      let own = [
        "content-type", "content-length", "content-encoding", "transfer-encoding", "connection",
        "host", "expect", "te", "trailer", "upgrade",
      ]
      return HeaderField.isName(name) && !own.contains(name.lowercased())
    }
  }

  /// Header fields for origins.
  static var originFields: ValueKind {
    fields(
      "an object of header fields with literal values, env:NAME or file:/path "
        + "(Authorization and Cookie: only env: or file:); no fields for framing or conditions"
    ) { name, secret in
      HostRule.isField(name) && (secret.isReference || !HostRule.isCredential(name))
    }
  }
}

/// Validates URLs of proxies: `http://host:port`, and in a variable or file also
/// `http://user:password@host:port`.
public enum ProxyURL {
  static let allowed =
    "http://host:port, or env:NAME or file:/path for a URL with user and password"

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

  fileprivate static func parts(_ text: String) -> URLComponents? {
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }), let parts = URLComponents(string: text),
      parts.scheme == "http", let host = parts.host, !host.isEmpty,
      let port = parts.port, (1...65_535).contains(port),
      parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil
    else { return nil }
    return parts
  }
}

// MARK: - Operators

extension ValueKind<[OperatorToken]> {
  /// Tokens: a list in a file; otherwise the JSON5 text of a list, or secrets separated by commas.
  static var tokens: ValueKind {
    ValueKind(
      allowed: "a list of secrets, or of tokens such as "
        + "{ name: \"deploy\", token: \"env:DEPLOY_TOKEN\", scopes: [\"purge\"] }",
      isSecret: true, schema: #""type": "array""#,
      read: { value throws(MemberProblems) in
        let items: [RawValue]
        switch value.listOfArgument ?? value {
        case .array(let all): items = all
        case .argument: items = (value.list ?? []).map { .argument($0) }
        default: return nil
        }
        var problems: [MemberProblem] = []
        var settings = AdminSettings()
        for (index, item) in items.enumerated() {
          var token = OperatorToken(.literal(""))
          let found: [MemberProblem]
          if case .object(let members) = item {
            found = Setting.apply(
              members, by: OperatorToken.members, requiring: "token", to: &token)
          } else {
            found = OperatorToken.members[1].apply(item, to: &token)
          }
          settings.tokens.append(token)
          problems += found.map { $0.inside(": token \(index + 1)") }
        }
        var seen: Set<String> = []
        for name in settings.names where problems.isEmpty && !seen.insert(name).inserted {
          problems.append(MemberProblem("two tokens have the name \(name)"))
        }
        guard problems.isEmpty else { throw MemberProblems(problems) }
        return settings.tokens
      },
      write: { tokens in
        let texts = tokens.map { token in
          token == OperatorToken(token.secret)
            ? JSON5.quoted(token.secret.text)
            : Setting.literal(
              of: token, by: OperatorToken.members, requiring: "token",
              unlike: OperatorToken(token.secret))
        }
        return "[" + texts.joined(separator: ", ") + "]"
      })
  }
}

extension OperatorToken {
  static let allowedSecret =
    "a secret of 16 characters or more, without blanks or commas, or env:NAME or file:/path"

  fileprivate static let members: [Setting<OperatorToken>] = [
    .key("name", \.name, .optional(nameKind)),
    .key("token", \.secret, .token),
    .key("scopes", \.scopes, scopesKind),
  ]

  private static let nameKind = ValueKind<String>.text("1 to 64 letters, digits, -, _ and .") {
    (1...64).contains($0.utf8.count) && $0.isPlain(with: "-_.")
  }.secret

  private static let scopesKind = ValueKind<Set<OperatorScope>>(
    allowed: "a list of " + OperatorScope.allCases.map(\.rawValue).joined(separator: ", "),
    read: { value in
      let found = (value.list ?? []).compactMap(OperatorScope.init)
      return found.isEmpty || found.count != value.list?.count ? nil : Set(found)
    },
    write: { scopes in
      JSON5.list(OperatorScope.allCases.filter(scopes.contains).map(\.rawValue))
    })

  /// Reads the secret.
  ///
  /// - Throws: `ConfigurationError` if the secret is missing, or no token.
  public func named(
    _ name: String, environment: [String: String]
  ) throws(ConfigurationError) -> Operator {
    let place = "admin.tokens: \(name)"
    let text = try secret.value(environment: environment, at: place)
    guard Self.isSecret(text) else {
      let source = secret.isReference ? "\(secret.text) is not allowed" : "not allowed"
      throw ConfigurationError(at: place, "\(source): \(Self.allowedSecret)")
    }
    return Operator(name: name, token: text, scopes: scopes)
  }
}

extension AdminSettings {
  /// Returns the operators. Leaves out tokens that cannot be used and adds them to `problems`: a
  /// missing variable or file, a secret that is too short, and one that two tokens share. No
  /// message contains a secret.
  public func operators(
    environment: [String: String], into problems: inout ConfigurationProblems
  ) -> [Operator] {
    var operators: [Operator] = []
    for (name, token) in zip(names, tokens) {
      let found = problems.collect { () throws(ConfigurationError) in
        try token.named(name, environment: environment)
      }
      guard let found else { continue }
      if let other = operators.first(where: { $0.token == found.token }) {
        problems.add(
          at: "admin.tokens", "\(name) has the same secret as \(other.name): each needs its own")
        continue
      }
      operators.append(found)
    }
    return operators
  }
}

// MARK: - Signatures

extension ValueKind<[SigningSettings.Key]> {
  /// A list of `id:secret`. Messages name an item by its place, never its text.
  static var signingKeys: ValueKind {
    ValueKind(
      allowed: "a list of \(SigningSettings.Key.allowed)", isSecret: true,
      schema: ValueKind<[String]>.listSchema,
      read: { value throws(MemberProblems) in
        guard let items = value.list else { return nil }
        var keys: [SigningSettings.Key] = []
        var problems: [MemberProblem] = []
        for (number, item) in items.enumerated() {
          if let key = SigningSettings.Key(item), !keys.contains(where: { $0.id == key.id }),
            number < SigningSettings.maximumKeys
          {
            keys.append(key)
          } else {
            problems.append(
              MemberProblem(
                at: ", item \(number + 1)", "not allowed: \(SigningSettings.Key.allowed)"))
          }
        }
        guard problems.isEmpty else { throw MemberProblems(problems) }
        return keys
      }, write: { JSON5.list($0.map { $0.id + ":" + $0.secret.text }) })
  }
}

extension SigningSettings.Key {
  fileprivate static let allowed =
    "id:secret, at most \(SigningSettings.maximumKeys); id: up to \(longestID) letters, digits, - "
    + "and _, each once; secret: \(secretLengths.lowerBound) to \(secretLengths.upperBound) "
    + "characters without blanks and commas, or env:NAME or file:/path for them"

  /// Parses `id:secret`.
  fileprivate init?(_ text: String) {
    guard let colon = text.firstIndex(of: ":") else { return nil }
    let id = String(text[..<colon])
    let secret = SecretText(String(text[text.index(after: colon)...]))
    // A reference in place of an item would be a key called `env`, whose secret is public.
    guard (1...Self.longestID).contains(id.utf8.count), id.isPlain(),
      id != "env", id != "file", secret.isWellFormed,
      secret.isReference || Self.isSecret(secret.text)
    else { return nil }
    self.init(id: id, secret: secret)
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
