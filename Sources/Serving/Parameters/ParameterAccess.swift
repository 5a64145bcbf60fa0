// ParameterAccess: who may use a parameter.

import Core

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
    Sizing.enlarging.contains(name) && value != "0" && !rules.allowsEnlarging
  }

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
