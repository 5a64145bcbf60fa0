// SignatureParameters: the parameters of signed URLs, and which parameters need a signature.

import Model

/// Who may use a parameter.
enum ParameterAccess: Hashable, Sendable {
  /// Every client, unless all requests need a signature.
  case plain
  /// With `signing.mode` `options` only signed requests.
  case signed
  /// Only requests with a signature or an operator's token, with every `signing.mode`.
  case vouched
  /// Clients that have the option (`server.allow`). The values in `except` are for every client.
  case option(ClientOption, except: Set<String> = [])
}

extension ImageParameter {
  /// Whether an unsigned request may use the parameter with this value.
  func isOpen(value: String, rules: RequestRules) -> Bool {
    guard !isBeyondPresets(rules), !enlarges(value, against: rules) else { return false }
    return (try? checkAccess(value: value, rules: rules)) != nil
  }

  /// Whether the rules allow presets only, and the parameter changes the image.
  func isBeyondPresets(_ rules: RequestRules) -> Bool {
    // A redirected request names a format in addition to its preset.
    rules.presetsOnly && shapesImage && !(rules.redirectsAuto && name == "format")
  }

  /// Whether the value enlarges images, which the rules forbid.
  func enlarges(_ value: String, against rules: RequestRules) -> Bool {
    name == "enlarge" && value != "0" && !rules.allowsEnlarging
  }

  /// The times that `exp` can name: up to the end of the year 9999.
  static let expiryRange = 1...253_402_300_799

  /// The parameters of signatures. `RequestRules.grant` verifies them, before any value is parsed.
  static let signatureTable: [ImageParameter] = [
    ImageParameter(
      name: "exp",
      allowed: .whole(
        expiryRange, unit: "Unix seconds", saying: text(expiryRange) + ", in Unix seconds"),
      group: .signature, help: "The time from which on the URL is refused",
      shapesImage: false, access: .plain
    ) { value, _ in whole(value, in: expiryRange) != nil },
    ImageParameter(
      name: "sig", allowed: AllowedValues(text: "id.signature", form: .text),
      group: .signature, help: "HMAC-SHA256 of path and query: id.signature",
      shapesImage: false, access: .plain
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
    case .vouched:
      if !rules.areVouched { throw .unsignedParameter(name, key: "signing.mode") }
    case .option(let option, let free):
      // What no request may say is a wrong value, and no matter of rights.
      guard !rules.options.contains(option), !free.contains(value),
        allowed(rules).names.contains(value)
      else { return }
      throw rules.signing.mode == .off
        ? .forbiddenParameter(name) : .unsignedParameter(name, key: "server.allow")
    }
  }
}
