// DoctorEndpoint: loads a source afresh and says what each step found.

import Core

/// `/admin/doctor`: POST loads the source `url`, which the rules of sources may change or refuse.
///
/// No client's fields are forwarded: those of this request are the operator's.
struct DoctorEndpoint: Endpoint {
  let path = EndpointPath.exact("/admin/doctor")
  let methods: [Method] = [.post]

  func operation(for method: Method) -> Operation? {
    Operation(
      summary: "Load a source, and say what each step found", query: ["url": "Of the source"])
  }

  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let text = try AdminQuery(context.query, allowed: ["url"])["url"] ?? ""
    var request: ImageRequest
    do throws(ImageError) {
      request = try ImageParameter.parse(
        context.query, rules: context.policy.operatorRules, kind: .info)
    } catch {
      guard case .forbiddenSource = error else { throw error }
      var refused = Diagnosis(of: text)
      refused.end(.allowed, with: error)
      return .json(try JSONResponse(refused))
    }
    request.options.trail = try context.trail()
    request.options.trace = context.trace
    let doctor = context.services.doctor
    return .jsonLater { [request] () async throws(ImageError) in
      try await doctor.diagnose(request)
    }
  }
}
