// ExplainEndpoint: says what a request would do and why, without performing it.

import Core

/// `/admin/explain`: the query of `/image`, and optionally `accept`, the value of an `Accept` field
/// in place of the request's own.
///
/// The request's `Cache-Control`, client hints and forwarded fields count, as for `/image`.
struct ExplainEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/explain")

  func operation(for method: Method) -> Operation? {
    Operation(
      summary: "What a request would do, and why", takesImageQuery: true,
      query: ["accept": "The client's Accept field"])
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let (query, accept) = try Self.split(context.query)
    let formats = accept.map { AcceptedFormats(accept: $0) } ?? context.acceptedFormats
    let (rules, refusal) = Self.rules(for: query, of: context)
    let (parsed, needs) = try ImageParameter.parseAdaptive(query, rules: rules, kind: .image)
    var request = rules.request(parsed, accepting: formats)
    if let use = HintUse(needs, of: parsed, rules: rules) {
      request = rules.request(request, for: use.hints(on: context.connection))
    }
    RequestCacheControl(on: context.connection).apply(to: &request.options, rights: rules.options)
    let names = rules.keyFilter.rule(for: request.source)?.forwardedHeaders ?? []
    if let forwarding = Forwarding(names: names) {
      request = forwarding.apply(to: request, on: context.connection)
    }
    let shaping = try ImageQuery(query).rounded(to: rules.sizeSteps).withPreset(rules).shaping
    let explainer = context.services.explainer
    let configuration = context.policy.configuration
    let report = ExplainReport(
      request, parameters: shaping, rules: rules, hints: needs, refusal: refusal,
      configuration: configuration)
    return .jsonLater { [request] in
      var report = report
      report.explanation = await explainer.explain(request)
      return report
    }
  }

  /// Returns the query without `accept`, and the value of `accept`.
  private static func split(
    _ query: ArraySlice<UInt8>
  ) throws(ImageError) -> (query: [UInt8], accept: String?) {
    let pieces = query.split(separator: UInt8(ascii: "&"))
    func isAccept(_ piece: ArraySlice<UInt8>) -> Bool {
      PercentEncoding.decode(piece.prefix { $0 != UInt8(ascii: "=") }) == "accept"
    }
    let own = pieces.filter(isAccept).joined(separator: "&".utf8)
    return (
      Array(pieces.filter { !isAccept($0) }.joined(separator: "&".utf8)),
      try AdminQuery(Array(own)[...], allowed: ["accept"])["accept"]
    )
  }

  /// Returns the rules that a client's request would have, or those of operators and the error with
  /// which a client would be refused.
  private static func rules(
    for query: [UInt8], of context: RequestContext
  ) -> (rules: RequestRules, refusal: ImageError?) {
    do throws(ImageError) {
      let grant = try context.policy.rules.grant(path: "/image", query: query[...], kind: .image)
      if let expiry = grant.expiry, expiry <= Clock.now() {
        throw .expiredSignature(expiry.seconds)
      }
      _ = try ImageParameter.parse(query, rules: grant.rules)
      return (grant.rules, nil)
    } catch {
      return (context.policy.operatorRules, error)
    }
  }
}

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
      name: request.transform.output.format?.rawValue
        ?? (request.transform.output.keepsFormat ? "source" : nil),
      negotiated: request.transform.output.accepted.map(\.rawValue),
      redirects: (isNegotiated || !hints.isEmpty) && rules.redirectsAuto)
    client = Client(allowed: refusal == nil, code: refusal?.code, message: refusal?.message)
    limits = Limits(
      maximumPixels: configuration.imaging.maximumPixels,
      maximumResultPixels: configuration.imaging.maximumResultPixels,
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
