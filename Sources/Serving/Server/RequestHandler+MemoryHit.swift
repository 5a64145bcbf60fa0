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
    guard mayHit(client, on: connection) else { return nil }
    recognize(client, on: connection)
    guard let key = client.known?.key ?? key(of: client, on: connection),
      let variant = provider.cachedVariant(for: key)
    else { return nil }
    let policy = client.policy
    let now = Clock.now()
    // A plain target neither expires nor follows hints.
    let target = client.known == nil ? client.target : nil
    let expiry = target?.expiry
    if let expiry, expiry <= now { return nil }
    let fields = HitFields(
      of: variant.info.freshness, at: now, idLength: client.requestID.length, until: expiry,
      hints: target?.hintNumber ?? 0)
    let status = isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds: Int
    let response: Response
    do throws(ImageError) {
      if policy.configuration.headStyle == .block {
        response = try hitResponse(variant, for: client, widths: fields.widths)
        microseconds = client.elapsedMicroseconds
        response.stamp(
          fields, id: client.requestID, now: now, microseconds: microseconds, loop: client.loop)
        if policy.crossOrigin.isPerClient {
          response.stamp(page: policy.crossOrigin.page(on: connection), of: policy.crossOrigin)
        }
      } else {
        var head = try hitHead(variant, for: client, widths: fields.widths)
        microseconds = client.elapsedMicroseconds
        head.stamp(fields, id: client.requestID, now: now, microseconds: microseconds)
        if policy.crossOrigin.isPerClient {
          head.stamp(
            page: policy.crossOrigin.page(on: connection), of: policy.crossOrigin,
            widths: fields.widths)
        }
        response = try Response(head: head, style: .fields, body: variant.body)
      }
    } catch {
      return context(of: client, on: connection, method: method).refuse(error)
    }
    client.loop.hitLatency.record(microseconds: microseconds)
    remember(client, on: connection)
    if policy.logsHits || client.trace.isRecorded {
      logHit(status: status, bytes: variant.body.count, of: client, on: connection)
    }
    return queue(response, status: status, bytes: variant.body.count, to: client, on: connection)
  }

  /// Whether an event loop may answer the request by itself, if a tier has a fresh entry.
  func mayHit(_ client: Connection, on connection: OpaquePointer) -> Bool {
    client.method.isSafe && !closesConnections && !RequestCacheControl.arePresent(on: connection)
      && !supersededRequests.mayInclude(connection)
  }

  /// Finds what is known of a target that is not parsed.
  func recognize(_ client: Connection, on connection: OpaquePointer) {
    guard client.isUnparsed, client.known == nil else { return }
    let formats = client.loop.accept.formats(on: connection).intersection(
      client.policy.rules.onOffer)
    let digest = client.rawTarget.withUnsafeBytes {
      KnownTargets.Digest($0, accepting: formats, under: client.policy.serial)
    }
    client.known = knownTargets.target(digest)
    if client.known == nil { client.unknownDigest = digest }
  }

  /// Keeps the key of a target that was parsed for this hit, so that it is not parsed for the next.
  func remember(_ client: Connection, on connection: OpaquePointer) {
    guard let digest = client.unknownDigest else { return }
    client.unknownDigest = nil
    if let plain = plainTarget(of: client, on: connection) {
      knownTargets.remember(plain, for: digest)
    }
  }

  /// Returns what a hit needs of the target, if only target and `Accept` decide the response.
  func plainTarget(of client: Connection, on connection: OpaquePointer) -> PlainTarget? {
    if let known = client.known { return known }
    guard let target = client.target, let stem = target.plainStem,
      let key = key(of: client, on: connection)
    else { return nil }
    return PlainTarget(key: key, stem: stem, isNegotiated: target.isNegotiated)
  }

  /// Returns the client's cache key. Reads only the fields that the target depends on.
  private func key(of client: Connection, on connection: OpaquePointer) -> CacheKey? {
    guard let target = client.target else { return nil }
    guard target.isAdaptive, target.key != nil else { return target.key }
    let formats =
      target.isNegotiated ? client.loop.accept.formats(on: connection) : AcceptedFormats()
    guard let use = target.hintUse else {
      return target.key(accepting: formats, client.policy.rules)
    }
    return target.key(accepting: formats, for: use.hints(on: connection), client.policy.rules)
  }

  /// Returns the event loop's prepared response, or creates one.
  private func hitResponse(
    _ variant: Variant, for client: Connection, widths: HitFields.Widths
  ) throws(ImageError) -> Response {
    let loop = client.loop
    let prepared = prepared(variant, for: client)
    if let response = prepared?.response(of: loop, widths: widths) { return response }
    let response = try Response(
      head: try hitHead(variant, for: client, widths: widths), style: .block, body: variant.body,
      widths: widths)
    prepared?.keep(response, for: loop, widths: widths)
    return response
  }

  /// Returns the head of a hit, without the values of date, id, time and ages.
  private func hitHead(
    _ variant: Variant, for client: Connection, widths: HitFields.Widths
  ) throws(ImageError) -> ResponseHead {
    let policy = client.policy
    guard let target = client.target, case .success(let request) = target.request else {
      throw .internal(detail: "a hit without a request")
    }
    var head = ResponseHead(
      hitWith: variant.info.freshness, widths: widths, crossOrigin: policy.crossOrigin)
    head.add(info: variant.info, source: request.source, cacheStatus: .hit(.memory))
    if let vary = policy.crossOrigin.vary(with: target.vary) { head.add("Vary", value: vary) }
    head.addCommon()
    policy.configuration.addHints(to: &head)
    policy.crossOrigin.addShared(to: &head)
    return head
  }

  /// Returns the prepared responses of a variant; `nil` if they belong to another server in this
  /// process.
  private func prepared(_ variant: Variant, for client: Connection) -> PreparedResponse? {
    let workers = client.policy.configuration.workers
    let found =
      variant.prepared.load()
      ?? variant.prepared.storeIfNil(
        PreparedResponse(owner: serial, loops: workers))
    guard let prepared = found as? PreparedResponse, prepared.owner == serial,
      client.loop.index < workers
    else { return nil }
    prepared.renew(for: client.loop, policy: client.policy.serial)
    return prepared
  }

  private func logHit(
    status: Int, bytes: Int, of client: Connection, on connection: OpaquePointer
  ) {
    let line = RequestLine(
      method: client.method == .head ? "HEAD" : "GET", status: status,
      bytes: client.bodyBytes(status: status, of: bytes),
      cacheStatus: CacheStatus.hit(.memory).headerValue, error: nil)
    if client.policy.logsHits { return log(line, of: client, on: connection) }
    client.trace.line = line
  }
}
