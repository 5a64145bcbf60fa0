// DoctorEndpoint: loads a source afresh and says what each step found.

import Core

/// `/admin/doctor`: POST loads the source `url`, which the rules of sources may change or refuse.
///
/// No client's fields are forwarded: those of this request are the operator's.
struct DoctorEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/doctor")
  let methods: [Method] = [.post]

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let text = try AdminQuery(context.query, allowed: ["url"])["url"]
    let rules = context.policy.operatorRules
    var request: ImageRequest
    do throws(ImageError) {
      request = try ImageParameter.parse(context.query, rules: rules, kind: .info)
    } catch {
      guard case .forbiddenSource = error else { throw error }
      var refused = Diagnosis()
      refused.steps = [Diagnosis.Step(.allowed, in: nil, error: error)]
      return .json(
        try JSONResponse(DoctorReport(url: text ?? "", rule: nil, diagnosis: refused)))
    }
    request.options.trail = try context.trail()
    request.options.trace = context.trace
    let rule = ExplainReport.Rule(of: request.source, in: rules.keyFilter)
    let doctor = context.services.doctor
    return .jsonLater { [request] () async throws(ImageError) in
      DoctorReport(
        url: request.source.text, rule: rule, diagnosis: try await doctor.diagnose(request))
    }
  }
}

/// The JSON of `/admin/doctor`.
private struct DoctorReport: Encodable {
  private enum CodingKeys: CodingKey { case url, rule, ok, steps, image }

  let url: String
  let rule: ExplainReport.Rule?
  let diagnosis: Diagnosis

  /// Encodes what is missing as null.
  func encode(to encoder: any Encoder) throws {
    var members = encoder.container(keyedBy: CodingKeys.self)
    try members.encode(SecretMask.withoutUsers(url), forKey: .url)
    try members.encode(rule, forKey: .rule)
    try members.encode(diagnosis.isSound, forKey: .ok)
    try members.encode(diagnosis.steps, forKey: .steps)
    try members.encode(diagnosis.image, forKey: .image)
  }
}
