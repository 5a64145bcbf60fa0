// CommandOperator: the client with which a command of an operator talks to the server.

import Core

/// Why a command ends, as one line for the user.
struct CommandFailure: Error {
  let description: String
  /// The exit status.
  var status: CInt = 1
}

extension ServerClient {
  /// Creates a client with the first token of `admin.tokens` that has the scopes and can be read
  /// here. Other tokens of the list may be in files and variables that only the server has.
  ///
  /// - Throws: if there is no such token, or the configuration does not tell where it listens.
  init(
    _ configuration: Configuration, needing scopes: Set<OperatorScope>,
    environment: [String: String]
  ) throws(CommandFailure) {
    let admin = configuration.admin
    guard !admin.tokens.isEmpty else {
      throw CommandFailure(
        description: "no operator token: set admin.tokens to a token of the server")
    }
    var holder: Operator?
    var problem: String?
    for (name, token) in zip(admin.names, admin.tokens)
    where holder == nil && token.scopes.isSuperset(of: scopes) {
      do throws(ConfigurationError) {
        holder = try token.named(name, environment: environment)
      } catch {
        problem = problem ?? error.description
      }
    }
    let wanted = scopes.map(\.rawValue).sorted().joined(separator: " and ")
    guard let holder else {
      throw CommandFailure(
        description: problem ?? "no token of admin.tokens has the scope \(wanted)")
    }
    if let problem = Self.problem(of: configuration.server) {
      throw CommandFailure(description: problem)
    }
    self.init(configuration.server, as: holder)
  }
}
