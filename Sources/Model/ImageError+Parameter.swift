// ImageError+Parameter: the parameter at fault.

extension ImageError {
  /// The parameter at fault, if any.
  public var parameter: String? {
    switch self {
    case .invalidURL, .forbiddenSource: "url"
    case .invalidParameter(let name, _, _), .unknownParameter(let name, _),
      .missingParameter(let name), .forbiddenParameter(let name), .unsignedParameter(let name, _):
      name
    case .invalidSignature: "sig"
    case .expiredSignature: "exp"
    case .watermark: "watermark"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.parameter
    default: nil
    }
  }
}
