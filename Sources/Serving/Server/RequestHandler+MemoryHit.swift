// RequestHandler+MemoryHit: responds to requests from memory, in front of the endpoints.

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
  func respondFromMemory(
    to client: Connection, on connection: OpaquePointer, method: UnsafePointer<CChar>
  ) -> MHD_Result? {
    guard let target = client.target, target.key != nil, client.method.isSafe, !closesConnections,
      !RequestCacheControl.arePresent(on: connection),
      !supersededRequests.mayInclude(connection),
      let key = key(of: target, loop: client.loop, on: connection),
      let variant = provider.cachedVariant(for: key)
    else { return nil }
    let now = Clock.now()
    let expiry = target.expiry
    if let expiry, expiry <= now { return nil }
    let fields = HitFields(
      of: variant.info.freshness, at: now, idLength: client.requestID.length, until: expiry,
      hints: target.hintNumber)
    let status = isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds: Int
    let response: Response
    do throws(ImageError) {
      if configuration.headStyle == .block {
        response = try hitResponse(variant, of: target, widths: fields.widths, for: client.loop)
        microseconds = client.elapsedMicroseconds
        response.stamp(
          fields, id: client.requestID, now: now, microseconds: microseconds, loop: client.loop)
        if crossOrigin.isPerClient {
          response.stamp(page: crossOrigin.page(on: connection), of: crossOrigin)
        }
      } else {
        var head = try hitHead(variant, of: target, widths: fields.widths)
        microseconds = client.elapsedMicroseconds
        head.stamp(fields, id: client.requestID, now: now, microseconds: microseconds)
        if crossOrigin.isPerClient {
          head.stamp(
            page: crossOrigin.page(on: connection), of: crossOrigin, widths: fields.widths)
        }
        response = try Response(head: head, style: .fields, body: variant.body)
      }
    } catch {
      return context(of: client, on: connection, method: method).refuse(error)
    }
    client.loop.hitLatency.record(microseconds: microseconds)
    if logsHits || client.trace.isRecorded {
      logHit(status: status, bytes: variant.body.count, of: client, on: connection)
    }
    return queue(response, status: status, bytes: variant.body.count, to: client, on: connection)
  }

  /// Returns the client's cache key. Reads only the fields that the target depends on.
  private func key(
    of target: RequestTarget, loop: EventLoopState, on connection: OpaquePointer
  ) -> CacheKey? {
    guard target.isAdaptive else { return target.key }
    let formats =
      target.isNegotiated ? loop.accept.formats(on: connection) : AcceptedFormats()
    guard let use = target.hintUse else { return target.key(accepting: formats, rules) }
    return target.key(accepting: formats, for: use.hints(on: connection), rules)
  }

  /// Returns the event loop's prepared response, or creates one.
  private func hitResponse(
    _ variant: Variant, of target: RequestTarget, widths: HitFields.Widths,
    for loop: EventLoopState
  ) throws(ImageError) -> Response {
    let prepared = prepared(variant, for: loop)
    if let response = prepared?.response(of: loop, widths: widths) { return response }
    let response = try Response(
      head: try hitHead(variant, of: target, widths: widths), style: .block, body: variant.body,
      widths: widths)
    prepared?.keep(response, for: loop, widths: widths)
    return response
  }

  /// Returns the head of a hit, without the values of date, id, time and ages.
  private func hitHead(
    _ variant: Variant, of target: RequestTarget, widths: HitFields.Widths
  ) throws(ImageError) -> ResponseHead {
    guard case .success(let request) = target.request else {
      throw .internal(detail: "a hit without a request")
    }
    var head = ResponseHead(
      hitWith: variant.info.freshness, widths: widths, crossOrigin: crossOrigin)
    head.add(info: variant.info, source: request.source, cacheStatus: .hit(.memory))
    if let vary = crossOrigin.vary(with: target.vary) { head.add("Vary", value: vary) }
    head.addCommon()
    configuration.addHints(to: &head)
    crossOrigin.addShared(to: &head)
    return head
  }

  /// Returns the prepared responses of a variant; `nil` if they belong to another server in this
  /// process.
  private func prepared(_ variant: Variant, for loop: EventLoopState) -> PreparedResponse? {
    let found =
      variant.prepared.load()
      ?? variant.prepared.storeIfNil(
        PreparedResponse(owner: serial, loops: configuration.workers))
    guard let prepared = found as? PreparedResponse, prepared.owner == serial,
      loop.index < configuration.workers
    else { return nil }
    return prepared
  }

  private func logHit(
    status: Int, bytes: Int, of client: Connection, on connection: OpaquePointer
  ) {
    let line = RequestLine(
      method: client.method == .head ? "HEAD" : "GET", status: status,
      bytes: client.bodyBytes(status: status, of: bytes),
      cacheStatus: CacheStatus.hit(.memory).headerValue, error: nil)
    if logsHits { return log(line, of: client, on: connection) }
    client.trace.line = line
  }
}
