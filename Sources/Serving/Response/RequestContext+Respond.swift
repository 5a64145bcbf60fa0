// RequestContext+Respond: responds with images, JSON and errors.

import CMicrohttpd
import Model
import Platform
import Telemetry

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
    let fields = imageFields(of: delivery, for: request)
    let head = imageHead(fields, of: variant.info, microseconds: microseconds)
    do throws(ImageError) {
      if status == 200, client.method == .get, case .file(let region) = variant.body,
        !region.isInMemory
      {
        let result = try stream(region, head: head, cacheStatus: cacheStatus)
        record(delivery, microseconds: microseconds)
        return result
      }
      let closes = handler.closesConnections
      let make = { () throws(ImageError) in
        try Response(
          head: head, style: policy.configuration.headStyle, body: variant.body, closes: closes)
      }
      // libmicrohttpd reads a file's body into memory that all uses of its response share.
      let isShared =
        if case .memory = variant.body { delivery.isShared && !closes } else { false }
      let response = try isShared ? fields.response(with: head, make: make) : make()
      record(delivery, microseconds: microseconds)
      log(status: status, bytes: variant.body.count, cacheStatus: fields.cacheStatus)
      return queue(response, status: status, bytes: variant.body.count)
    } catch {
      return refuse(error)
    }
  }

  /// Creates the head of an unprepared image response from the fields that it shares.
  func imageHead(_ fields: ImageFields, of info: VariantInfo, microseconds: Int) -> ResponseHead {
    let now = Clock.now()
    let crossOrigin = policy.crossOrigin
    var head = ResponseHead(date: client.loop.date(now), id: client.requestID)
    head.append(fields.timings)
    head.append(microseconds: microseconds)
    head.addAge(
      of: info.freshness, at: now, isPrivate: client.target?.isPrivate == true,
      until: client.target?.expiry)
    head.append(fields.others)
    if crossOrigin.isPerClient {
      crossOrigin.addOwn(to: &head, page: crossOrigin.page(on: connection))
    }
    return head
  }

  /// Returns the fields that all responses of a delivery to such a target have. Those of a shared
  /// delivery are formatted once per event loop.
  private func imageFields(of delivery: ImageDelivery, for request: ImageRequest) -> ImageFields {
    guard delivery.isShared, let target = client.target else {
      return imageFields(
        of: delivery.variant.info, timings: delivery.timings, cacheStatus: delivery.cacheStatus,
        for: request)
    }
    let prepared = PreparedHead.of(
      delivery, owner: policy.serial, loops: policy.configuration.workers)
    if let fields = prepared?.fields(of: client.loop, for: request.source, vary: target.vary) {
      return fields
    }
    let fields = imageFields(
      of: delivery.variant.info, timings: delivery.timings, cacheStatus: delivery.cacheStatus,
      for: request)
    prepared?.keep(fields, of: client.loop, for: request.source, vary: target.vary)
    return fields
  }

  /// Returns the fields of an image response that do not vary between clients and moments.
  func imageFields(
    of info: VariantInfo, timings: Timings, cacheStatus: CacheStatus, for request: ImageRequest
  ) -> ImageFields {
    var (before, others) = (ResponseHead(), ResponseHead())
    before.appendTimings(timings)
    others.add(info: info, source: request.source, cacheStatus: cacheStatus)
    addShared(to: &others, vary: client.target?.vary)
    return ImageFields(
      timings: before.bytes, others: others.bytes, cacheStatus: cacheStatus.headerValue)
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
    addShared(to: &head, vary: vary)
    if crossOrigin.isPerClient {
      crossOrigin.addOwn(to: &head, page: crossOrigin.page(on: connection))
    }
  }

  /// Adds the fields that every response has, but that of the client's page.
  private func addShared(to head: inout ResponseHead, vary: String?) {
    let crossOrigin = policy.crossOrigin
    if let vary = crossOrigin.vary(with: vary) { head.add("Vary", value: vary) }
    head.addCommon()
    policy.configuration.addHints(to: &head)
    crossOrigin.addShared(to: &head)
  }

  /// Creates a response without a body.
  func emptyResponse(head: ResponseHead) throws(ImageError) -> Response {
    let nothing = [UInt8]().withUnsafeBytes { ImageBytes(copying: $0) }
    return try Response(
      head: head, style: policy.configuration.headStyle, body: .memory(nothing),
      closes: handler.closesConnections)
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
