// SourceService+Plan: which source a request would get, without loading it.

import Model

extension SourceService {
  /// Returns the source that a request would get, with the reason.
  ///
  /// - Throws: the error that is certain, unless a stale source replaces it.
  func plan(
    for request: ImageRequest
  ) async throws(ImageError) -> (source: PlannedSource, why: String, isCollapsed: Bool) {
    let info = request.source.scheme == .local ? nil : await entry(of: request.key.source)
    if let info, let use = use(of: info.freshness, by: request) {
      let why = use.staleReason.map { "the source on disk, \($0.text)" } ?? "a fresh source on disk"
      return (.cached(PlannedEntry(info: info, use: use)), why, false)
    }
    if let refusal = refusal(of: request) { throw refusal }
    let forward = CacheStatus.Forward(of: request, hasEntry: info != nil)
    let running = running(for: request)
    guard running.source == 0, !running.isRevalidating else {
      let why =
        running.isRevalidating
        ? "waits for a running revalidation" : "joins a running load of the source"
      return (.forwarded(forward, stale: nil), why, true)
    }
    if let error = await outlook(for: request)?.error {
      guard let info, replaces(error, with: info.freshness, for: request) else { throw error }
      return (.forwarded(.stale, stale: info), "a load would fail: \(error.code)", false)
    }
    guard request.source.scheme != .local else {
      return (.forwarded(forward, stale: nil), "reads the local file", false)
    }
    var isConditional = false
    if case .source(let origin, _) = info?.stored, request.options.cache != .bypass {
      isConditional = Validators(origin) != nil
    }
    let why = isConditional ? "revalidates the source at its origin" : "downloads the source"
    return (.forwarded(forward, stale: nil), why, false)
  }
}

extension CacheStatus.StaleReason {
  /// The reason in words.
  var text: String {
    switch self {
    case .whileRevalidating: "stale, while it is revalidated"
    case .ifError: "stale, because the origin failed recently"
    case .accepted: "stale, as the request accepts"
    }
  }
}
