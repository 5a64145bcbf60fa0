// FailureParameters: the parameters for an image that cannot be had.

import Model

extension ImageParameter {
  /// `fallback` and `onerror`.
  static let failureTable: [ImageParameter] = [
    ImageParameter(
      name: "fallback",
      allowed: {
        AllowedValues(text: $0.fallbacksAllowed, names: $0.fallbacks.keys.sorted() + ["none"])
      },
      group: .loading, help: "The image to send if this one cannot be had",
      shapesImage: false, access: .plain
    ) {
      $1.fallback =
        $0 == "none" ? FailureAnswer.error : $1.rules.fallbacks[$0].map { .fallback($0) }
      return $1.fallback != nil
    },
    ImageParameter(
      name: "onerror", allowed: .names(["redirect"], saying: "redirect"),
      group: .loading, help: "Send the client to the source if the image cannot be had",
      shapesImage: false, access: .vouched
    ) {
      $1.redirectsFailures = $0 == "redirect"
      return $1.redirectsFailures
    },
  ]
}

extension ImageParameter.Draft {
  /// Returns what the client gets if the image cannot be had.
  ///
  /// - Throws: `invalidParameter` if both a fallback image and a redirect are requested.
  func failureAnswer() throws(ImageError) -> FailureAnswer {
    guard redirectsFailures else { return fallback ?? rules.defaultFallback }
    if case .fallback? = fallback {
      throw .invalidParameter(
        name: "onerror", value: "redirect", allowed: "not together with fallback")
    }
    return .redirect
  }
}

extension RequestRules {
  /// The allowed values of `fallback` for error messages; only their number if there are more than
  /// 20.
  fileprivate var fallbacksAllowed: String {
    switch fallbacks.count {
    case 0: "none; no fallbacks are configured"
    case ...20: "one of " + (fallbacks.keys.sorted() + ["none"]).joined(separator: ", ")
    default: "none, or one of the \(fallbacks.count) fallbacks of the configuration"
    }
  }
}
