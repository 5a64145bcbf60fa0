// RequestContext: handles a request that is not a memory hit, directly or after suspending.

import CMicrohttpd
import FoundationEssentials
import Glibc
import Model
import Telemetry

/// The context of one call of the handler. Lives on the stack.
struct RequestContext {
  let handler: RequestHandler
  let client: Connection
  let connection: OpaquePointer
  let method: UnsafePointer<CChar>

  /// Answers a complete request that memory has no response for, or suspends its connection.
  func answer() -> MHD_Result {
    if client.method == .options { return answerOptions() }
    do throws(ImageError) {
      let (target, route) = try admitted()
      switch route {
      case .stats: return answerStats()
      case .image, .info: return answerImage(target, try trail())
      case .prefetches:
        _ = try trail()
        return operate(route, target)
      default: return operate(route, target)
      }
    } catch {
      return refuse(error)
    }
  }

  /// Returns the target and its route, if the request is allowed.
  ///
  /// - Throws: `notFound`, `unauthorized`, `methodNotAllowed`.
  func admitted() throws(ImageError) -> (RequestTarget, Route) {
    guard let target = client.target, let route = target.route else {
      throw .notFound(path: displayable(client.target?.path ?? ""))
    }
    if route.isForOperators {
      // Without operators the admin endpoints do not exist.
      guard !handler.operatorTokens.withLock({ $0.isEmpty }) else {
        throw .notFound(path: displayable(target.path))
      }
      guard isOperator else { throw .unauthorized }
    }
    guard route.methods.contains(client.method) else {
      throw .methodNotAllowed(
        method: displayable(String(cString: method)), allowed: route.allowed)
    }
    return (target, route)
  }

  private func answerImage(_ target: RequestTarget, _ trail: ServerTrail) -> MHD_Result {
    guard !handler.isDraining else { return refuse(.draining) }
    switch target.request {
    case .success(var request):
      do throws(ImageError) {
        request.options = try options(of: request)
        request.options.trail = trail
      } catch {
        return refuse(error)
      }
      handler.operationKeys.supersede(by: connection)
      if target.isNegotiated {
        request = handler.rules.request(
          request, accepting: client.worker.accept.formats(on: connection))
      }
      if let forwarding = target.forwarding {
        request = forwarding.apply(to: request, on: connection)
      }
      let isRedirected = isRedirected
      let atOnce =
        (target.key == nil ? deliveryFromMemory(request) : nil)
        ?? handler.provider.deliveryAtOnce(for: request)
      if let atOnce, !isRedirected || isKeptNamed(atOnce, of: request) {
        return answer(with: atOnce)
      }
      let (provider, takesComing) = (
        handler.provider,
        // With HTTP/1.0, a client cannot distinguish a truncated response from a complete one.
        request.transform.progressive && client.method == .get && client.isHTTP11
      )
      return suspend { [request] () async throws(ImageError) in
        if isRedirected { return .delivery(try await Self.named(request, atOnce, by: provider)) }
        guard takesComing else { return .delivery(try await provider.variant(for: request)) }
        return switch try await provider.answer(to: request) {
        case .whole(let delivery): .delivery(delivery)
        case .coming(let coming): .coming(coming)
        }
      }
    case .failure(let error): return refuse(error)
    // Every target of these routes has a request or an error.
    case nil: return refuse(.internal(detail: "a target without a request"))
    }
  }

  /// Returns the memory entry of a request whose key depends on more than the target.
  private func deliveryFromMemory(_ request: ImageRequest) -> ImageDelivery? {
    let options = request.options
    guard options.cache == .normal || options.cache == .only, options.age == AgeDemands() else {
      return nil
    }
    return handler.provider.cachedVariant(for: request.key).map {
      ImageDelivery(variant: $0, cacheStatus: .hit(.memory), timings: Timings())
    }
  }

  /// Returns the options of the target combined with those of the request fields.
  private func options(of request: ImageRequest) throws(ImageError) -> LoadOptions {
    var options = request.options
    let mayReload = handler.configuration.allowsReload
    if !mayReload {
      if options.cache == .refresh { throw .forbiddenParameter("refresh") }
      if options.cache == .bypass { throw .forbiddenParameter("cache") }
      if options.retriesFailed { throw .forbiddenParameter("retry") }
    }
    RequestCacheControl(on: connection).apply(to: &options, mayReload: mayReload)
    return options
  }

  /// Suspends the connection until the work is done.
  ///
  /// - Parameter beyondLimit: whether the request is admitted during overload.
  func suspend(
    beyondLimit: Bool = false,
    for work: @escaping @Sendable () async throws(ImageError) -> Outcome
  ) -> MHD_Result {
    let watcher = handler.watcher
    guard
      watcher.reserve(beyondLimit: beyondLimit, taken: handler.provider.unattendedCount)
    else {
      return refuse(.overloaded(queue: "requests", retryAfter: 1))
    }
    client.stage = .suspended
    // A suspended request has its own deadline.
    client.watch.deadline = .max
    let exchange = SuspendedRequest(
      number: watcher.nextNumber(), connection: connection, descriptor: client.watch.descriptor,
      deadline: Clock.coarseMilliseconds()
        + handler.configuration.requestTimeout.wholeMilliseconds,
      watcher: watcher, wake: client.worker.wake)
    client.exchange = exchange
    // The order matters. If resumed before it is suspended, a connection is not suspended at all
    // (libmicrohttpd 0.9.75) and stays in the monitor's table. The monitor may end the request
    // after `add`, a later request with its key after `begin`, and its work after `start`.
    MHD_suspend_connection(connection)
    if watcher.add(exchange) {
      handler.operationKeys.begin(exchange, on: connection)
      exchange.start(work)
    } else {
      exchange.interrupt(.failure(.draining))
      watcher.resumeRefused(connection, wake: client.worker.wake)
    }
    return .YES
  }

  /// Answers a request whose connection was resumed.
  func conclude() -> MHD_Result {
    // libmicrohttpd also calls when a resumed connection has no outcome yet, and calls again later.
    guard let exchange = client.exchange, let outcome = exchange.outcome else { return .YES }
    // `.NO` closes the connection; `completed` then ends the suspended request and counts the
    // client.
    if case .gone = outcome { return .NO }
    client.exchange = nil
    if case .coming(let coming) = outcome { return answer(with: coming, to: exchange) }
    handler.operationKeys.end(exchange)
    switch outcome {
    case .delivery(let delivery): return answer(with: delivery)
    case .done(let json, let status, let fields):
      return answer(
        json: json, status: status, error: nil, closes: handler.isDraining, fields: fields)
    case .failure(.cancelled):
      return refuse(.internal(detail: "the work was cancelled while its client was waiting"))
    case .failure(let error): return refuse(error)
    case .coming, .gone: return .NO
    }
  }

  /// Creates the head of an image response that is not prepared.
  func imageHead(
    _ info: VariantInfo, of request: ImageRequest, _ cacheStatus: CacheStatus, _ timings: Timings,
    microseconds: Int
  ) -> ResponseHead {
    let now = Clock.now()
    var timings = timings
    timings.total = .microseconds(microseconds)
    var head = ResponseHead(date: now, id: client.requestID)
    head.add("Server-Timing", timings.headerValue)
    head.addAge(
      of: info.freshness, at: now, isPrivate: client.target?.forwarding?.isPrivate == true)
    head.add(
      info: info, source: request.source, cacheStatus: cacheStatus)
    addCommon(to: &head, vary: client.target?.vary)
    return head
  }

  private func answer(with delivery: ImageDelivery) -> MHD_Result {
    guard case .success(let request)? = client.target?.request else {
      return refuse(.internal(detail: "a delivery without a request"))
    }
    if isRedirected { return redirect(to: delivery) }
    let variant = delivery.variant
    let status = handler.isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds = client.elapsedMicroseconds
    let head = imageHead(
      variant.info, of: request, delivery.cacheStatus, delivery.timings, microseconds: microseconds)
    do throws(ImageError) {
      if status == 200, client.method == .get, case .file(let region) = variant.body,
        !region.isInMemory
      {
        let result = try send(region, head, delivery.cacheStatus)
        record(delivery.cacheStatus, microseconds)
        return result
      }
      let response = try Response(
        head: head, style: handler.configuration.headStyle, body: variant.body,
        closes: handler.isDraining)
      record(delivery.cacheStatus, microseconds)
      log(status, variant.body.count, delivery.cacheStatus.headerValue, error: nil)
      return queue(response, status: status, bytes: variant.body.count)
    } catch {
      return refuse(error)
    }
  }

  /// Counts a delivered image and its latency.
  func record(_ cacheStatus: CacheStatus, _ microseconds: Int) {
    if cacheStatus.isFromMemory {
      client.worker.hitLatency.record(microseconds: microseconds)
    } else {
      handler.figures.missLatency.record(microseconds: microseconds)
      handler.figures.origins.add(cacheStatus.originName)
    }
  }

  private func answerStats() -> MHD_Result {
    // Read once and in this order: a response with status 200 must not close its connection.
    let closes = handler.isDraining
    let isDraining = closes || handler.isLeaving
    let figures = handler.figures.figures(
      limit: handler.configuration.maximumActiveRequests, connections: handler.connectionCount)
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let json = try? encoder.encode(handler.stats(figures, isDraining)) else {
      return refuse(.internal(detail: "the figures cannot be encoded"))
    }
    return answer(
      json: Array(json) + [UInt8(ascii: "\n")], status: isDraining ? 503 : 200, error: nil,
      closes: closes)
  }

  /// Responds with an error.
  func refuse(_ error: ImageError) -> MHD_Result {
    if client.target?.route?.isForImages == true { handler.figures.origins.add("error") }
    let body = ErrorBody(
      error, id: client.requestID.description, explains: handler.configuration.explainsErrors,
      hint: client.target?.hint(for: error))
    return answer(
      json: body.json, status: error.status, error: error, closes: handler.isDraining)
  }

  /// Responds with JSON. `error` is the error that the JSON describes, if any.
  func answer(
    json: [UInt8], status: Int, error: ImageError?, closes: Bool, fields: [AnswerField] = []
  ) -> MHD_Result {
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", "application/json")
    var vary: String?
    switch error {
    case .remembered(_, let seconds, let clientSeconds, let isRepeated):
      head.addCacheControl(
        lifetime: seconds, clientMaxAge: clientSeconds ?? seconds,
        isPrivate: client.target?.forwarding?.isPrivate == true)
      vary = client.target?.vary
      if isRepeated { head.add("Cache-Status", CacheStatus.failedURL) }
    default: head.add("Cache-Control", "no-store")
    }
    if case .methodNotAllowed(_, let allowed) = error { head.add("Allow", allowed) }
    if case .unauthorized = error { head.add("WWW-Authenticate", "Bearer") }
    if let seconds = error?.retryAfter { head.add("Retry-After", "\(seconds)") }
    for field in fields { head.add(field.name, field.value) }
    addCommon(to: &head, vary: vary)
    do throws(ImageError) {
      let body = json.withUnsafeBytes { ImageBytes(copying: $0) }
      let response = try Response(
        head: head, style: handler.configuration.headStyle, body: .memory(body), closes: closes)
      log(status, json.count, nil, error: error)
      return queue(response, status: status, bytes: json.count)
    } catch {
      handler.log.error("no answer", ["detail": .string(error.logDetail ?? error.code)])
      return .NO
    }
  }

  // MARK: Common

  func queue(_ response: Response, status: Int, bytes: Int) -> MHD_Result {
    handler.queue(response, status: status, bytes: bytes, on: client, connection)
  }

  func log(_ status: Int, _ bytes: Int, _ cacheStatus: String?, error: ImageError?) {
    handler.log(
      RequestLine(
        method: displayable(String(cString: method)), status: status,
        bytes: client.bodyBytes(status: status, of: bytes), cacheStatus: cacheStatus, error: error),
      of: client, on: connection)
  }
}

extension CacheStatus {
  /// The `Cache-Status` of a negatively cached failure.
  fileprivate static let failedURL = "pictor; hit; detail=failed-url"

  /// Whether the image came from memory. Such hits are counted by their latency.
  fileprivate var isFromMemory: Bool {
    switch self {
    case .hit(.memory), .staleHit(.memory, _, _): true
    default: false
    }
  }

  /// The origin's name in `/stats`.
  fileprivate var originName: String {
    switch self {
    case .hit(let tier), .staleHit(let tier, _, _): tier.rawValue
    case .staleIfError: "stale"
    case .miss: "origin"
    }
  }
}
