// RequestContext+Respond: responds with images, JSON and errors.

import CMicrohttpd
import Core

extension RequestContext {
  /// Responds with an image, or redirects to its URL.
  func respond(with delivery: ImageDelivery) -> MHD_Result {
    guard case .success(let request)? = client.target?.request else {
      return refuse(.internal(detail: "a delivery without a request"))
    }
    if isRedirected { return redirect(to: delivery) }
    let variant = delivery.variant
    let cacheStatus = delivery.cacheStatus
    let status = handler.isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds = client.elapsedMicroseconds
    let head = imageHead(
      of: variant.info, timings: delivery.timings, cacheStatus: cacheStatus, for: request,
      microseconds: microseconds)
    record(delivery, microseconds: microseconds)
    return respond(status, head: head, body: variant.body, cacheStatus: cacheStatus)
  }

  /// Creates the head of an image response.
  func imageHead(
    of info: VariantInfo, timings: Timings, cacheStatus: CacheStatus, for request: ImageRequest,
    microseconds: Int
  ) -> ResponseHead {
    let now = Clock.now()
    var head = ResponseHead(date: client.loop.date(now), id: client.requestID)
    head.add(timings, total: microseconds)
    head.addAge(
      of: info.freshness, at: now, isPrivate: client.target?.isPrivate == true,
      until: client.target?.expiry)
    head.add(info: info, source: request.source, cacheStatus: cacheStatus)
    addCommon(to: &head, vary: client.target?.vary)
    return head
  }

  /// Responds with an endpoint's JSON.
  func respond(with response: JSONResponse) -> MHD_Result {
    respond(with: response, error: nil)
  }

  /// Responds with an error. Clients may store one that is remembered, for at most `limit` seconds.
  func refuse(_ error: ImageError, limit: Int = .max) -> MHD_Result {
    count(error)
    let body = ErrorBody(
      error, id: client.requestID.description, explains: policy.configuration.explainsErrors,
      hint: client.target?.hint(for: error))
    return respond(
      with: JSONResponse(bytes: body.json, status: error.status), error: error, limit: limit)
  }

  /// Responds with JSON; `error` is what it describes, if that is an error.
  private func respond(
    with json: JSONResponse, error: ImageError?, limit: Int = .max
  ) -> MHD_Result {
    let closes = json.closes ?? handler.closesConnections
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", value: json.contentType.description)
    let vary = addCaching(of: error, to: &head, limit: limit)
    if case .methodNotAllowed(_, let allowed) = error { head.add("Allow", value: allowed) }
    if let challenge = error?.challenge { head.add("WWW-Authenticate", value: challenge) }
    if let seconds = error?.retryAfter { head.add("Retry-After", value: "\(seconds)") }
    for field in json.fields { head.add(field.name, value: field.value) }
    addCommon(to: &head, vary: vary)
    do throws(ImageError) {
      let body = json.bytes.withUnsafeBytes { ImageBytes(copying: $0) }
      let response = try Response(
        head: head, style: policy.configuration.headStyle, body: .memory(body), closes: closes)
      log(status: json.status, bytes: json.bytes.count, error: error)
      return queue(response, status: json.status, bytes: json.bytes.count)
    } catch {
      handler.log.error(
        "no response sent", fields: ["detail": .string(error.logDetail ?? error.code)])
      return .NO
    }
  }

  /// Adds `Cache-Control` and `Cache-Status`, and returns the value of `Vary`. Clients may store
  /// negatively cached failures, for at most `limit` seconds, and no other JSON.
  func addCaching(
    of error: ImageError?, to head: inout ResponseHead, limit: Int = .max, isPrivate: Bool = false
  ) -> String? {
    guard case .remembered(_, let seconds, let clientSeconds, let isRepeated) = error else {
      head.add("Cache-Control", value: "no-store")
      return nil
    }
    let rest = min(
      client.target?.expiry.map { max($0.seconds - Clock.now().seconds, 0) } ?? .max, limit)
    head.addCacheControl(
      lifetime: min(seconds, rest), clientMaxAge: min(clientSeconds ?? seconds, rest),
      isPrivate: isPrivate || client.target?.isPrivate == true)
    if isRepeated { head.add("Cache-Status", value: CacheStatus.failedURL) }
    return client.target?.vary
  }

  /// Adds the fields that every response has.
  func addCommon(to head: inout ResponseHead, vary: String?) {
    let crossOrigin = policy.crossOrigin
    if let vary = crossOrigin.vary(with: vary) { head.add("Vary", value: vary) }
    head.addCommon()
    policy.configuration.addHints(to: &head)
    crossOrigin.addShared(to: &head)
    if crossOrigin.isPerClient {
      crossOrigin.addOwn(to: &head, page: crossOrigin.page(on: connection))
    }
  }

  /// Responds with a body, by default an empty one. A file on disk is streamed.
  ///
  /// - Parameter failure: what the response is sent in place of, and its name in the log.
  func respond(
    _ status: Int, head: ResponseHead, body: Variant.Body? = nil, cacheStatus: CacheStatus? = nil,
    insteadOf failure: (error: ImageError, name: String)? = nil
  ) -> MHD_Result {
    let body = body ?? .memory([UInt8]().withUnsafeBytes { ImageBytes(copying: $0) })
    do throws(ImageError) {
      if status != 304, client.method == .get, case .file(let region) = body, !region.isInMemory {
        return try stream(
          region, head: head, cacheStatus: cacheStatus, status: status, insteadOf: failure)
      }
      let response = try Response(
        head: head, style: policy.configuration.headStyle, body: body,
        closes: handler.closesConnections)
      log(
        status: status, bytes: body.count, cacheStatus: cacheStatus?.headerValue,
        error: failure?.error, fallback: failure?.name)
      return queue(response, status: status, bytes: body.count)
    } catch {
      return refuse(error)
    }
  }

  // MARK: Counting and logging

  /// Counts a failed request.
  func count(_ error: ImageError) {
    handler.figures.errors.add(error.code)
    if client.target?.endpoint?.imageQuery != nil { handler.figures.outcomes.addError() }
  }

  /// Queues a response; see `RequestHandler.queue`.
  func queue(_ response: Response, status: Int, bytes: Int) -> MHD_Result {
    handler.queue(response, status: status, bytes: bytes, to: client, on: connection)
  }

  /// Counts a delivery, its latency and, once for all requests of a flight, its phases.
  func record(_ delivery: ImageDelivery, microseconds: Int) {
    record(
      delivery.cacheStatus, delivery.timings, microseconds: microseconds,
      countsStages: delivery.takeTimings())
  }

  /// Counts a delivered image, its latency and its phases.
  func record(
    _ cacheStatus: CacheStatus, _ timings: Timings, microseconds: Int, countsStages: Bool = true
  ) {
    if client.trace.isRecorded { client.trace.timings = timings }
    switch cacheStatus {
    case .hit(.memory):
      client.loop.hitLatency.record(microseconds: microseconds)
    case .staleHit(.memory, _, _):
      handler.figures.staleHitLatency.record(microseconds: microseconds)
    default:
      handler.figures.missLatency.record(microseconds: microseconds)
      if countsStages { handler.figures.stages.record(timings) }
      handler.figures.outcomes.add(cacheStatus)
    }
  }

  /// Writes the request's line to the log. `bytes` is the length of the body, even if it is not
  /// sent. `fallback` is what was sent in place of the error.
  func log(
    status: Int, bytes: Int, cacheStatus: String? = nil, error: ImageError? = nil,
    fallback: String? = nil
  ) {
    handler.log(
      RequestLine(
        method: String(cString: methodName), status: status,
        bytes: client.bodyBytes(status: status, of: bytes), cacheStatus: cacheStatus, error: error,
        fallback: fallback),
      of: client, on: connection)
  }
}

extension ImageError {
  /// The value of `WWW-Authenticate` (RFC 6750, section 3).
  fileprivate var challenge: String? {
    switch self {
    case .unauthorized: "Bearer"
    case .insufficientScope(let scope): "Bearer error=\"insufficient_scope\", scope=\"\(scope)\""
    default: nil
    }
  }
}

extension CacheStatus {
  /// The `Cache-Status` of a negatively cached failure.
  fileprivate static let failedURL = "pictor; hit; detail=failed-url"
}
