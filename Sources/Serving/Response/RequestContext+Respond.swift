// RequestContext+Respond: responds with images, redirects, JSON, errors and allowed methods.

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
    let range =
      client.method == .get
      ? ByteRange(on: connection, of: variant.info.etag, variant.body.count) : nil
    let status =
      client.method.isSafe && handler.isNotModified(variant.info, on: connection)
      ? 304 : range?.status ?? 200
    let microseconds = client.elapsedMicroseconds
    var head = imageHead(
      of: variant.info, timings: delivery.timings, cacheStatus: cacheStatus, for: request,
      microseconds: microseconds)
    record(delivery, microseconds: microseconds)
    guard status != 304, let range else {
      return respond(status, head: head, body: variant.body, cacheStatus: cacheStatus)
    }
    // Of what is not there, caches keep nothing.
    if case .beyond = range {
      head = ResponseHead(date: Clock.now(), id: client.requestID)
      head.add("Cache-Control", value: "no-store")
      addCommon(to: &head, vary: client.target?.vary)
    }
    head.add("Content-Range", value: range.description)
    do throws(ImageError) {
      let body = try range.part(of: variant.body)
      return respond(status, head: head, body: body, cacheStatus: cacheStatus)
    } catch {
      return refuse(error)
    }
  }

  func imageHead(
    of info: VariantInfo, timings: Timings, cacheStatus: CacheStatus, for request: ImageRequest,
    microseconds: Int
  ) -> ResponseHead {
    let now = Clock.now()
    var head = ResponseHead(date: client.loop.date(now), id: client.requestID)
    head.add(timings, total: microseconds)
    let presentation = request.options.presentation
    let latest = presentation.maximumAge.map { UnixTime(seconds: now.seconds + $0) }
    head.addAge(
      of: info.freshness, at: now, isPrivate: client.target?.isPrivate == true,
      until: [client.target?.expiry, latest].compactMap(\.self).min())
    head.add(
      info: info, source: request.source, cacheStatus: cacheStatus, presentation: presentation)
    if let name = client.target?.door?.cacheField {
      switch cacheStatus {
      case .hit(.memory), .hit(.disk), .hit(.shared): head.add(name, value: "HIT")
      case .staleHit: head.add(name, value: "STALE")
      default: head.add(name, value: "MISS")
      }
    }
    addCommon(to: &head, vary: client.target?.vary)
    return head
  }

  /// Responds with an error. Clients may store one that is remembered, for at most `limit` seconds.
  func refuse(_ error: ImageError, limit: Int = .max) -> MHD_Result {
    count(error)
    if let answer = client.target?.door?.reply(to: error) {
      let response = JSONResponse(
        bytes: Array(SecretMask.masked(answer.body).utf8), status: answer.status,
        contentType: answer.contentType)
      return respond(with: response, error: error, limit: limit, fields: answer.fields)
    }
    let body = ErrorBody(
      error, id: client.requestID.description, explains: policy.configuration.explainsErrors,
      hint: client.target?.hint(for: error))
    return respond(
      with: JSONResponse(bytes: body.json, status: error.status), error: error, limit: limit)
  }

  /// Responds with JSON; `error` is what it describes, if that is an error.
  func respond(
    with json: JSONResponse, error: ImageError? = nil, limit: Int = .max,
    fields: [HeaderField] = []
  ) -> MHD_Result {
    let closes = json.closes ?? handler.closesConnections
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", value: json.contentType)
    let vary = addCaching(of: error, to: &head, limit: limit)
    if case .methodNotAllowed(_, let allowed) = error { head.add("Allow", value: allowed) }
    if let challenge = error?.challenge { head.add("WWW-Authenticate", value: challenge) }
    if let seconds = error?.retryAfter { head.add("Retry-After", value: "\(seconds)") }
    for field in json.fields { head.add(field.name, value: field.value) }
    for field in fields { head.add(field) }
    addCommon(to: &head, vary: json.vary ?? vary)
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
    let traceID = client.trace.recordedID
    if traceID != nil { client.trace.timings = timings }
    let latency: LatencyHistogram
    switch cacheStatus {
    case .hit(.memory): latency = client.loop.hitLatency
    case .staleHit(.memory, _, _): latency = handler.figures.staleHitLatency
    default:
      latency = handler.figures.missLatency
      if countsStages { handler.figures.stages.record(timings, traceID: traceID) }
      handler.figures.outcomes.add(cacheStatus)
    }
    latency.record(microseconds: microseconds)
    if let traceID { latency.exemplify(microseconds: microseconds, traceID: traceID) }
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

extension RequestContext {
  /// Seconds for which a browser may cache a preflight response; Chromium's own limit.
  private static let preflightLifetime = "7200"

  /// Responds with the allowed methods and request fields (WHATWG Fetch, section 3.3.3).
  func respondToOptions() -> MHD_Result {
    let endpoint = endpoint
    let methods = endpoint?.allow ?? EndpointTable.allowAnywhere
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Allow", value: methods)
    if !policy.configuration.corsOrigins.isEmpty {
      head.add("Access-Control-Allow-Methods", value: methods)
      head.add(
        "Access-Control-Allow-Headers", value: requestFields(of: endpoint).joined(separator: ", "))
      head.add("Access-Control-Max-Age", value: Self.preflightLifetime)
    }
    addCommon(to: &head, vary: nil)
    return respond(204, head: head)
  }

  /// Returns the request fields that a page may send in addition to the safelisted ones.
  private func requestFields(of endpoint: (any Endpoint)?) -> [String] {
    var names = [
      "X-Operation-Key", "Priority", "Cache-Control", "If-None-Match", "If-Modified-Since",
      "Range", "If-Range",
    ]
    if endpoint?.access == .operators { names.append("Authorization") }
    if endpoint?.access == .operators || endpoint?.methods.contains(.post) == true {
      names.append("Content-Type")
    }
    for name in client.target?.forwarding?.names ?? []
    where !names.contains(where: { $0.lowercased() == name.lowercased() }) {
      names.append(name)
    }
    return names
  }
}

extension RequestContext {
  var isRedirected: Bool {
    policy.rules.redirectsAuto && client.method.isSafe && client.target?.isAdaptive == true
      && client.target?.door == nil
  }

  /// Whether memory has the image that the redirected request will ask for.
  func isCachedNamed(_ delivery: ImageDelivery, of request: ImageRequest) -> Bool {
    guard client.target?.isNegotiated == true else {
      return handler.provider.isCached(request.key)
    }
    guard let image = delivery.variant.info.image else { return false }
    return handler.provider.isCached(request.naming(image.format).key)
  }

  /// Returns the image, and caches it for the redirected request so that it is not rendered twice.
  ///
  /// - Parameters:
  ///   - isNegotiated: whether the redirect adds the format. Its numbers add nothing to the key.
  ///   - atOnce: the image, if it was available without waiting.
  static func named(
    _ request: ImageRequest, isNegotiated: Bool, atOnce: ImageDelivery?,
    by provider: any ImageProvider
  ) async throws(ImageError) -> ImageDelivery {
    var found = atOnce
    if found == nil { found = try await provider.variant(for: request) }
    guard let delivery = found else { throw .internal(detail: "no image to redirect to") }
    if isNegotiated { await provider.keepNamed(delivery.variant, of: request) }
    return delivery
  }

  /// Redirects to the URL that names the delivered format. Uses 302 (RFC 9110, section 15.4.3),
  /// because another client, or a changed source, may get another format.
  ///
  /// `private` keeps the redirect out of shared caches, which would give every client the first
  /// client's format.
  func redirect(to delivery: ImageDelivery) -> MHD_Result {
    let info = delivery.variant.info
    guard let target = client.target, let image = info.image,
      case .success(let request)? = target.request
    else {
      return refuse(.internal(detail: "a redirect without a target or an image"))
    }
    let location = target.location(
      naming: image.format, sizing: adapted(request, of: target).transform.sizing,
      signer: policy.rules.signing.signer)
    // A longer location would be refused as a target, and may not fit into the response's head.
    guard location.utf8.count < RequestFraming.longestTarget else {
      return refuse(.targetTooLong(limit: RequestFraming.longestTarget))
    }
    let now = Clock.now()
    let microseconds = client.elapsedMicroseconds
    let cacheStatus = delivery.cacheStatus
    var head = ResponseHead(date: now, id: client.requestID)
    head.add(delivery.timings, total: microseconds)
    head.addAge(of: info.freshness, at: now, isPrivate: true, until: target.expiry)
    head.add("Location", value: location)
    head.add("Cache-Status", value: cacheStatus.headerValue)
    addCommon(to: &head, vary: target.vary)
    record(delivery, microseconds: microseconds)
    return respond(302, head: head, cacheStatus: cacheStatus)
  }
}
