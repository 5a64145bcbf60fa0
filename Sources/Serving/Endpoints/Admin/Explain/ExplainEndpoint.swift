// ExplainEndpoint: says what a request would do and why, without performing it.

import Model

/// `/admin/explain`: the query of `/image`, and optionally `accept`, the value of an `Accept` field
/// in place of the request's own.
///
/// The request's `Cache-Control`, client hints and forwarded fields count, as for `/image`.
struct ExplainEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/explain")
  let methods: [Method] = [.get, .head]
  let access = EndpointAccess.operators

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
