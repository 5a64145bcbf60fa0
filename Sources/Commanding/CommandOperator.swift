// CommandOperator: chooses the token with which a command talks to the server.

import Configuring
import Model

/// Chooses among the tokens of the configuration.
enum CommandOperator {
  /// Why there is no token, as one line for the user.
  struct Failure: Error {
    let description: String
  }

  /// Returns the first token that has the scopes and can be read here. Other tokens of the list may
  /// be in files and variables that only the server has.
  static func choose(
    from admin: AdminSettings, needing scopes: Set<OperatorScope>, environment: [String: String]
  ) throws(Failure) -> Operator {
    guard !admin.tokens.isEmpty else {
      throw Failure(description: "no operator token: set admin.tokens to a token of the server")
    }
    var problem: String?
    for (name, token) in zip(admin.names, admin.tokens) where token.scopes.isSuperset(of: scopes) {
      do throws(ConfigurationError) {
        return try token.named(name, environment: environment)
      } catch {
        problem = problem ?? error.description
      }
    }
    let wanted = scopes.map(\.rawValue).sorted().joined(separator: " and ")
    throw Failure(description: problem ?? "no token of admin.tokens has the scope \(wanted)")
  }
}
