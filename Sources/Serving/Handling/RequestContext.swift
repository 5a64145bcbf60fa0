// Exchanging: one request that is no memory hit, and its answer: on the spot, or by way of a suspended connection.

import CMicrohttpd
import FoundationEssentials
import Glibc
import Model
import Telemetry

/// What the handler knows while it answers one request; lives on the stack.
struct RequestContext {
  let handler: RequestHandler
  let client: Connection
  let connection: OpaquePointer
  let method: UnsafePointer<CChar>

  /// A whole request that memory has no answer to: answers it, or suspends the connection until it can be.
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

  /// Where the target leads.
  ///
  /// - Throws: `notFound`, `unauthorized`, `methodNotAllowed`.
  func admitted() throws(ImageError) -> (RequestTarget, Route) {
    guard let target = client.target, let route = target.route else {
      throw .notFound(path: displayable(client.target?.path ?? ""))
    }
    if route.isForOperators {
      // Where there are no operators, there is nothing to find out about their paths.
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
        // Where an answer ends with its connection, one that is torn looks like one that is whole.
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
    // Every target of this route has a request or an error.
    case nil: return refuse(.internal(detail: "a target without a request"))
    }
  }

  /// What memory has for a request whose key the target alone does not tell.
  private func deliveryFromMemory(_ request: ImageRequest) -> ImageDelivery? {
    let options = request.options
    guard options.cache == .normal || options.cache == .only, options.age == AgeDemands() else {
      return nil
    }
    return handler.provider.cachedVariant(for: request.key).map {
      ImageDelivery(variant: $0, cacheStatus: .hit(.memory), timings: Timings())
    }
  }

  /// The options of the target and of the header together.
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
  /// - Parameter beyondLimit: whether it is let in where there is no room for further requests.
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
    // While it is suspended the exchange has a deadline of its own.
    client.watch.deadline = .max
    let exchange = SuspendedRequest(
      number: watcher.nextNumber(), connection: connection, descriptor: client.watch.descriptor,
      deadline: Clock.coarseMilliseconds()
        + handler.configuration.requestTimeout.wholeMilliseconds,
      watcher: watcher, wake: client.worker.wake)
    client.exchange = exchange
    // In this order: resumed before it is suspended, a connection is not suspended at all (libmicrohttpd 0.9.75), and
    // stays in the watcher's table. The watcher may end it once it is added, a request with its key from `begin` on,
    // and its work from `start` on.
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

  /// The connection was resumed: the outcome is known.
  func conclude() -> MHD_Result {
    // libmicrohttpd also calls when a resumed connection has nothing new; then it is to call again.
    guard let exchange = client.exchange, let outcome = exchange.outcome else { return .YES }
    // Closes the connection; `completed` finds the exchange and counts the client.
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

  /// The head of an answer with an image, but for those that are prepared.
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

  /// Counts what was delivered, and how long it took.
  func record(_ cacheStatus: CacheStatus, _ microseconds: Int) {
    if cacheStatus.isFromMemory {
      client.worker.hitLatency.record(microseconds: microseconds)
    } else {
      handler.figures.missLatency.record(microseconds: microseconds)
      handler.figures.origins.add(cacheStatus.originName)
    }
  }

  private func answerStats() -> MHD_Result {
    // Asked once, in this order: an answer of 200 must not close its connection.
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

  /// Answers with an error of the contract.
  func refuse(_ error: ImageError) -> MHD_Result {
    if client.target?.route?.isForImages == true { handler.figures.origins.add("error") }
    let body = ErrorBody(
      error, id: client.requestID.description, explains: handler.configuration.explainsErrors,
      hint: client.target?.hint(for: error))
    return answer(
      json: body.json, status: error.status, error: error, closes: handler.isDraining)
  }

  /// Answers with JSON, which says what `error` was where there is one.
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
  /// The header of an answer from the list of failed URLs.
  fileprivate static let failedURL = "pictor; hit; detail=failed-url"

  /// Whether memory had it, which is counted by the time it took.
  fileprivate var isFromMemory: Bool {
    switch self {
    case .hit(.memory), .staleHit(.memory, _, _): true
    default: false
    }
  }

  /// The name under which `/stats` counts it.
  fileprivate var originName: String {
    switch self {
    case .hit(let tier), .staleHit(let tier, _, _): tier.rawValue
    case .staleIfError: "stale"
    case .miss: "origin"
    }
  }
}
