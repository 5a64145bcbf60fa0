// AdminSettings+Operators: reads the operators' tokens, from variables and files too.

import Model

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

extension OperatorToken {
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

  static let allowedSecret =
    "a secret of 16 characters or more, without blanks or commas, or env:NAME or file:/path"
}
