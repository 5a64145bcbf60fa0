// ExplainReport: the JSON of an explained request.

import Model

/// The JSON of `/admin/explain`: the request as it was understood, then the manager's explanation.
struct ExplainReport: Encodable {
  private struct Rule: Encodable {
    let number: Int
    let hosts: String
    let tags: [String]
  }

  private struct Keys: Encodable {
    let source: String
    let variant: String
  }

  private struct Format: Encodable {
    let name: String?
    let negotiated: [String]
    let redirects: Bool
  }

  private struct Client: Encodable {
    let allowed: Bool
    let code: String?
    let message: String?
  }

  private struct Limits: Encodable {
    let maximumPixels: Int
    let maximumResultPixels: Int
    let responseSeconds: Double

    private enum CodingKeys: String, CodingKey {
      case maximumPixels = "maximum_pixels"
      case maximumResultPixels = "maximum_result_pixels"
      case responseSeconds = "response_seconds"
    }
  }

  private let url: String
  private let rule: Rule?
  private let keys: Keys
  private let parameters: [String: String]
  private let transform: String
  private let format: Format
  private let client: Client
  private let limits: Limits
  /// The manager's part, whose members are the report's own.
  var explanation = Explanation()

  /// Reports a request.
  ///
  /// - Parameters:
  ///   - parameters: what shapes the image, with its preset.
  ///   - hints: the hints that the request follows.
  ///   - refusal: the error with which a client would be refused; `nil` for none.
  init(
    _ request: ImageRequest, parameters: [String: String], rules: RequestRules,
    hints: HintNeeds, refusal: ImageError?, configuration: ServerConfiguration
  ) {
    url = SecretMask.withoutUsers(request.source.text)
    rule = rules.keyFilter.place(of: request.source).map {
      Rule(
        number: $0.number, hosts: $0.hosts.description,
        tags: rules.keyFilter.tags(of: request.source))
    }
    keys = Keys(
      source: SecretMask.withoutUsers(request.key.source.text),
      variant: SecretMask.withoutUsers(request.key.text))
    self.parameters = parameters
    transform = request.transform.canonicalText
    let isNegotiated = rules.isNegotiated(request.transform)
    format = Format(
      name: request.transform.output.format?.rawValue,
      negotiated: request.transform.output.accepted.map(\.rawValue),
      redirects: (isNegotiated || !hints.isEmpty) && rules.redirectsAuto)
    client = Client(allowed: refusal == nil, code: refusal?.code, message: refusal?.message)
    limits = Limits(
      maximumPixels: configuration.maximumPixels,
      maximumResultPixels: configuration.maximumResultPixels,
      responseSeconds: configuration.answerTimeout / .seconds(1))
  }

  private enum CodingKeys: CodingKey {
    case url, rule, keys, parameters, transform, format, client, limits
  }

  /// Encodes a missing rule as null.
  func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(url, forKey: .url)
    try members.encode(rule, forKey: .rule)
    try members.encode(keys, forKey: .keys)
    try members.encode(parameters, forKey: .parameters)
    try members.encode(transform, forKey: .transform)
    try members.encode(format, forKey: .format)
    try members.encode(client, forKey: .client)
    try members.encode(limits, forKey: .limits)
    try explanation.encode(to: encoder)
  }
}
