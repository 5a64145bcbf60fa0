// OperatorTokenKey: reads and writes the list of operators' tokens.

import Model

extension ConfigurationKey {
  /// Tokens: a list in a file; otherwise the JSON5 text of a list, or secrets separated by commas.
  static func operatorTokens(
    _ path: String, at field: WritableKeyPath<Configuration, [OperatorToken]> & Sendable,
    purpose: String
  ) -> ConfigurationKey {
    ConfigurationKey(
      path: path, purpose: purpose, allowed: OperatorTokenList.allowed,
      read: { configuration, value throws(MemberProblems) in
        configuration[keyPath: field] = try OperatorTokenList.read(value)
        return true
      },
      write: { configuration in
        "[" + configuration[keyPath: field].map(OperatorTokenList.text).joined(separator: ", ")
          + "]"
      })
  }
}

/// Parses and writes tokens. Messages never contain a value, which may be a secret.
private enum OperatorTokenList {
  static let allowed =
    "a list of secrets, or of tokens such as "
    + "{ name: \"deploy\", token: \"env:DEPLOY_TOKEN\", scopes: [\"purge\"] }"
  private static let members = ["name", "token", "scopes"]
  private static let scopes = OperatorScope.allCases.map(\.rawValue)

  static func read(_ value: RawValue) throws(MemberProblems) -> [OperatorToken] {
    let items: [RawValue]
    switch value.listOfArgument ?? value {
    case .array(let all): items = all
    case .argument: items = (value.list ?? []).map { .argument($0) }
    default:
      throw MemberProblems(
        all: [MemberProblem(place: "", description: "not allowed: \(allowed)")])
    }
    var problems: [MemberProblem] = []
    var settings = AdminSettings()
    for (index, item) in items.enumerated() {
      let place = ": token \(index + 1)"
      if let token = token(item, at: place, into: &problems) { settings.tokens.append(token) }
    }
    var seen: Set<String> = []
    for name in settings.names where problems.isEmpty && !seen.insert(name).inserted {
      problems.append(MemberProblem(place: "", description: "two tokens have the name \(name)"))
    }
    guard problems.isEmpty else { throw MemberProblems(all: problems) }
    return settings.tokens
  }

  private static func token(
    _ value: RawValue, at place: String, into problems: inout [MemberProblem]
  ) -> OperatorToken? {
    func refuse(_ member: String = "", because description: String) {
      let suffix = member.isEmpty ? "" : ", \(member)"
      problems.append(MemberProblem(place: place + suffix, description: description))
    }
    guard case .object(let values) = value else {
      let secret = secret(value)
      if secret == nil { refuse(because: "not allowed: \(OperatorToken.allowedSecret)") }
      return secret.map { OperatorToken($0) }
    }
    let count = problems.count
    for unknown in values.keys.sorted() where !members.contains(unknown) {
      refuse(unknown, because: "unknown member: \(members.joined(separator: ", "))")
    }
    let found = values["token"].flatMap(secret)
    if found == nil {
      let problem = values["token"] == nil ? "it is required" : "not allowed"
      refuse("token", because: "\(problem): \(OperatorToken.allowedSecret)")
    }
    var token = found.map { OperatorToken($0) }
    if let name = values["name"] {
      token?.name = name.text
      if !isName(name.text) {
        refuse("name", because: "not allowed: 1 to 64 letters, digits, -, _ and .")
      }
    }
    if let texts = values["scopes"] {
      let found = (texts.list ?? []).compactMap(OperatorScope.init)
      token?.scopes = Set(found)
      if found.isEmpty || found.count != texts.list?.count {
        refuse(
          "scopes", because: "\(texts) is not allowed: a list of \(scopes.joined(separator: ", "))")
      }
    }
    return problems.count == count ? token : nil
  }

  /// Returns a secret or the reference to one; `nil` if it can be neither.
  private static func secret(_ value: RawValue) -> SecretText? {
    guard let text = value.text else { return nil }
    // The beginning of JSON5 that cannot be read would otherwise become part of a token.
    if case .argument = value, let first = text.first, "[{\"'".contains(first) { return nil }
    let secret = SecretText(text)
    guard secret.isWellFormed, secret.isReference || OperatorToken.isSecret(text) else {
      return nil
    }
    return secret
  }

  private static func isName(_ text: String?) -> Bool {
    guard let text, (1...64).contains(text.utf8.count) else { return false }
    return text.utf8.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
      default: "-_.".utf8.contains(byte)
      }
    }
  }

  static func text(_ token: OperatorToken) -> String {
    let secret = ConfigurationKey.quoted(token.secret.text)
    let isPlain = token.name == nil && token.scopes.count == OperatorScope.allCases.count
    guard !isPlain else { return secret }
    let name = token.name.map { "name: \(ConfigurationKey.quoted($0)), " } ?? ""
    let scopes = OperatorScope.allCases.filter(token.scopes.contains).map(\.rawValue)
    return "{ \(name)token: \(secret), scopes: \(ConfigurationKey.literal(scopes)) }"
  }
}
