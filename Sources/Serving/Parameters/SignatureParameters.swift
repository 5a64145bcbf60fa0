// SignatureParameters: the parameters of signed URLs, and which parameters need a signature.

import Model

/// Who may use a parameter.
enum ParameterAccess: Hashable, Sendable {
  /// Every client, unless all requests need a signature.
  case plain
  /// With `signing.mode` `options` only signed requests.
  case signed
  /// Clients that have the option (`server.allow`). The values in `except` are for every client.
  case option(ClientOption, except: Set<String> = [])
}

extension ImageParameter {
  /// The times that `exp` can name: up to the end of the year 9999.
  static let expiryRange = 1...253_402_300_799

  /// The parameters of signatures. `RequestRules.grant` verifies them, before any value is parsed.
  static let signatureTable: [ImageParameter] = [
    ImageParameter(
      name: "exp", allowed: text(expiryRange) + ", in Unix seconds", shapesImage: false,
      access: .plain
    ) { value, _ in whole(value, in: expiryRange) != nil },
    ImageParameter(
      name: "sig", allowed: "id.signature", shapesImage: false, access: .plain
    ) { _, _ in true },
  ]

  /// Checks that the rules let a client use the parameter with this value.
  ///
  /// - Throws: `unsignedParameter`, or `forbiddenParameter` if no signature would help.
  func checkAccess(value: String, rules: RequestRules) throws(ImageError) {
    switch access {
    case .plain: return
    case .signed:
      if rules.plainOnly { throw .unsignedParameter(name, key: "signing.mode") }
    case .option(let option, let free):
      guard !rules.options.contains(option), !free.contains(value) else { return }
      throw rules.signing.mode == .off
        ? .forbiddenParameter(name) : .unsignedParameter(name, key: "server.allow")
    }
  }
}
