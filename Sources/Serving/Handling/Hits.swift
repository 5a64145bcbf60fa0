// Hits: responds to requests from memory.

import CMicrohttpd
import Model
import Telemetry

extension RequestHandler {
  /// Responds to a complete request from memory. Returns `nil` if memory has no fresh entry, or the
  /// request is not for an image.
  ///
  /// Allocates nothing after a variant's first hit on an event loop, and avoids reference counting.
  /// The arguments are therefore borrowed from the callback, and this is not a method of
  /// `RequestContext`.
  func answerHit(
    on client: Connection, _ connection: OpaquePointer, method: UnsafePointer<CChar>
  ) -> MHD_Result? {
    guard let target = client.target, target.key != nil, client.method.isSafe, !isDraining,
      !RequestCacheControl.arePresent(on: connection),
      !operationKeys.mayConcern(connection),
      let key = key(of: target, for: client.worker, on: connection),
      let variant = provider.cachedVariant(for: key)
    else { return nil }
    let now = Clock.now()
    let ages = HitAges(
      of: variant.info.freshness, at: now, idLength: client.requestID.length)
    let status = isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds: Int
    let response: Response
    do throws(ImageError) {
      if configuration.headStyle == .block {
        response = try hitResponse(variant, target, ages.widths, client)
        microseconds = client.elapsedMicroseconds
        response.stamp(
          id: client.requestID, now: now, ages: ages, microseconds: microseconds,
          worker: client.worker)
        if crossOrigin.isPerClient {
          response.stamp(page: crossOrigin.page(on: connection), crossOrigin)
        }
      } else {
        var head = try hitHead(variant, target, ages.widths)
        microseconds = client.elapsedMicroseconds
        head.stamp(id: client.requestID, now: now, ages: ages, microseconds: microseconds)
        if crossOrigin.isPerClient {
          head.stamp(
            page: crossOrigin.page(on: connection), crossOrigin, ages.widths)
        }
        response = try Response(head: head, style: .fields, body: variant.body)
      }
    } catch {
      return RequestContext(handler: self, client: client, connection: connection, method: method)
        .refuse(error)
    }
    client.worker.hitLatency.record(microseconds: microseconds)
    if logsHits { logHit(status: status, bytes: variant.body.count, of: client, on: connection) }
    return queue(response, status: status, bytes: variant.body.count, on: client, connection)
  }

  /// Returns the client's cache key. Parses `Accept` only if the target is negotiated.
  private func key(
    of target: RequestTarget, for worker: EventLoopState, on connection: OpaquePointer
  ) -> CacheKey? {
    target.isNegotiated
      ? target.key(accepting: worker.accept.formats(on: connection), rules) : target.key
  }

  /// Returns the event loop's prepared response, or creates one.
  private func hitResponse(
    _ variant: Variant, _ target: RequestTarget, _ widths: HitAges.Widths, _ client: Connection
  ) throws(ImageError) -> Response {
    let prepared = prepared(variant, for: client.worker)
    if let response = prepared?.response(of: client.worker, widths) { return response }
    let response = try Response(
      head: try hitHead(variant, target, widths), style: .block, body: variant.body,
      widths: widths)
    prepared?.keep(response, for: client.worker)
    return response
  }

  /// Returns the head of a hit, without the values of date, id, time and ages.
  private func hitHead(
    _ variant: Variant, _ target: RequestTarget, _ widths: HitAges.Widths
  ) throws(ImageError) -> ResponseHead {
    guard case .success(let request) = target.request else {
      throw .internal(detail: "a hit without a request")
    }
    var head = ResponseHead(
      hitWith: variant.info.freshness, widths, crossOrigin: crossOrigin)
    head.add(info: variant.info, source: request.source, cacheStatus: .hit(.memory))
    if let vary = crossOrigin.vary(with: target.vary) { head.add("Vary", vary) }
    head.addCommon()
    crossOrigin.addShared(to: &head)
    return head
  }

  /// Returns the prepared responses of a variant; `nil` if they belong to another server in this
  /// process.
  private func prepared(_ variant: Variant, for worker: EventLoopState) -> PreparedResponse? {
    let found =
      variant.prepared.load()
      ?? variant.prepared.storeIfNil(
        PreparedResponse(owner: serial, workers: configuration.workers))
    guard let prepared = found as? PreparedResponse, prepared.owner == serial,
      worker.index < configuration.workers
    else { return nil }
    return prepared
  }

  private func logHit(
    status: Int, bytes: Int, of client: Connection, on connection: OpaquePointer
  ) {
    log(
      RequestLine(
        method: client.method == .head ? "HEAD" : "GET", status: status,
        bytes: client.bodyBytes(status: status, of: bytes),
        cacheStatus: CacheStatus.hit(.memory).headerValue, error: nil),
      of: client, on: connection)
  }
}
