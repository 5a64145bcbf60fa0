// RequestHandler+Hits: responds to requests from memory and from disk, in front of the endpoints.

import CMicrohttpd
import Core

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
    guard client.policy.configuration.headStyle == .block, mayHit(client, on: connection)
    else { return nil }
    recognize(client, on: connection)
    guard let known = knownTarget(of: client, on: connection),
      let variant = provider.cachedVariant(for: known.key)
    else { return nil }
    let policy = client.policy
    let now = Clock.now()
    if let expiry = known.expiry, expiry <= now { return nil }
    let fields = HitFields(
      of: variant.info.freshness, at: now, idLength: client.requestID.length, until: known.expiry,
      hints: known.hintNumber)
    let status = isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds: Int
    let response: Response
    do throws(ImageError) {
      response = try hitResponse(variant, for: client, widths: fields.widths)
      microseconds = client.elapsedMicroseconds
      response.stamp(
        fields, id: client.requestID, now: now, microseconds: microseconds, loop: client.loop)
      if policy.crossOrigin.isPerClient {
        response.stamp(page: policy.crossOrigin.page(on: connection), of: policy.crossOrigin)
      }
    } catch {
      return context(of: client, on: connection, method: method).refuse(error)
    }
    client.loop.hitLatency.record(microseconds: microseconds)
    remember(client, known, on: connection)
    if policy.logsHits || client.trace.isRecorded {
      if let id = client.trace.recordedID {
        client.loop.hitLatency.exemplify(microseconds: microseconds, traceID: id)
      }
      let line = RequestLine.hit(
        .memory, status: status, bytes: variant.body.count, of: client)
      if policy.logsHits { log(line, of: client, on: connection) } else { client.trace.line = line }
    }
    return queue(response, status: status, bytes: variant.body.count, to: client, on: connection)
  }

  /// Whether an event loop may answer the request by itself, if a tier has a fresh entry.
  func mayHit(_ client: Connection, on connection: OpaquePointer) -> Bool {
    client.method.isSafe && !closesConnections && !RequestCacheControl.arePresent(on: connection)
      && !supersededRequests.mayInclude(connection)
      && Self.field("Range", on: connection) == nil
  }

  /// Finds what is known of a target that is not parsed.
  func recognize(_ client: Connection, on connection: OpaquePointer) {
    guard client.isUnparsed, client.known == nil else { return }
    let formats = AcceptedFormats(on: connection).intersection(client.policy.rules.onOffer)
    let digest = client.rawTarget.withUnsafeBytes {
      KnownTargets.Digest(
        $0, accepting: formats, under: client.policy.serial ^ UInt64(client.host) << 48)
    }
    var entry = knownTargets.entry(digest)
    if case .hints(let use) = entry {
      entry = knownTargets.entry(KnownTargets.Digest(digest, for: use.hints(on: connection)))
    }
    if case .target(let target) = entry {
      client.known = target
    } else {
      client.unknownDigest = digest
    }
  }

  /// Keeps what is known of a target that was parsed for this hit, so that it is not parsed for the
  /// next.
  func remember(_ client: Connection, _ known: KnownTarget, on connection: OpaquePointer) {
    guard let digest = client.unknownDigest else { return }
    client.unknownDigest = nil
    guard let use = client.target?.hintUse else {
      return knownTargets.remember(.target(known), for: digest)
    }
    knownTargets.remember(.hints(use), for: digest)
    knownTargets.remember(
      .target(known), for: KnownTargets.Digest(digest, for: use.hints(on: connection)))
  }

  /// Returns what a hit needs of the request; `nil` if memory cannot have the response.
  func knownTarget(of client: Connection, on connection: OpaquePointer) -> KnownTarget? {
    if let known = client.known { return known }
    guard let target = client.target, let key = target.key,
      case .success(let request) = target.request
    else { return nil }
    return KnownTarget(
      key: target.isAdaptive ? client.adapted(request, of: target, on: connection).key : key,
      stem: target.plainStem, isNegotiated: target.isNegotiated, expiry: target.expiry,
      // A door with a field of its own has heads of its own.
      hintNumber: (target.hintUse?.needs.number ?? 0) | (target.door?.cacheField == nil ? 0 : 8))
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
    if let name = target.door?.cacheField { head.add(name, value: "HIT") }
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

}

/// Four responses per event loop, all with the same body bytes: for URLs that expire and for
/// others, for URLs that follow client hints and for others.
///
/// The head is updated in place (`Response`), which only the event loop's own thread may do. An
/// event loop creates a response at its first hit.
final class PreparedResponse: PreparedAnswer, @unchecked Sendable {
  // Sound as Sendable: slots `4n` to `4n + 3` and `policies[n]` are used on event loop `n`'s thread
  // only, and `deinit` runs without other references.

  /// The server that created the responses. The event loops of another server have the same indices
  /// but other threads.
  let owner: UInt64
  private let places: UnsafeMutableBufferPointer<Response?>
  /// Per event loop, the number of the policy that its responses were created under.
  private let policies: UnsafeMutableBufferPointer<UInt64>

  init(owner: UInt64, loops: Int) {
    self.owner = owner
    places = .allocate(capacity: 4 * loops)
    places.initialize(repeating: nil)
    policies = .allocate(capacity: loops)
    policies.initialize(repeating: 0)
  }

  deinit {
    places.deinitialize()
    places.deallocate()
    policies.deallocate()
  }

  /// Drops this event loop's responses, if they were created under another policy.
  func renew(for loop: EventLoopState, policy: UInt64) {
    guard policies[loop.index] != policy else { return }
    policies[loop.index] = policy
    for place in 4 * loop.index..<4 * loop.index + 4 { places[place] = nil }
  }

  /// Returns this event loop's response; `nil` if there is none with fields of these lengths.
  func response(of loop: EventLoopState, widths: HitFields.Widths) -> Response? {
    guard let response = places[Self.place(of: loop, widths: widths)], response.fits(widths) else {
      return nil
    }
    return response
  }

  /// Stores this event loop's response and replaces the previous one.
  func keep(_ response: Response, for loop: EventLoopState, widths: HitFields.Widths) {
    places[Self.place(of: loop, widths: widths)] = response
  }

  private static func place(of loop: EventLoopState, widths: HitFields.Widths) -> Int {
    4 * loop.index + (widths.isExpiring ? 1 : 0) + (widths.hints == 0 ? 0 : 2)
  }
}

extension RequestHandler {
  /// Responds to a complete request with a fresh small variant that the kernel has cached, after
  /// `respondFromMemory` missed. Returns `nil` without such a variant, or if more than target and
  /// `Accept` decides about the response; the endpoint then looks again.
  ///
  /// As a memory hit, it needs neither the parsed request nor a copy of it: a cache key and a file
  /// name (`KnownTarget`). The response's head is written in one pass.
  func respondFromDisk(to client: Connection, on connection: OpaquePointer) -> MHD_Result? {
    let policy = client.policy
    guard policy.configuration.headStyle == .block, !isDraining, !policy.crossOrigin.isPerClient,
      mayHit(client, on: connection), !client.trace.isRecorded,
      let known = knownTarget(of: client, on: connection), let stem = known.stem
    else { return nil }
    let start = Clock.nanoseconds()
    guard
      let variant = provider.variantOnDisk(
        for: known.key, of: { request(of: client, on: connection) }),
      case .memory = variant.body
    else { return nil }
    let end = Clock.nanoseconds()
    let status = isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds = (end - client.startedAt) / 1_000
    let disk = (end - start) / 1_000
    let now = Clock.now()
    let head = ResponseHead(
      ofDiskHit: variant.info, named: stem, date: client.loop.date(now), now: now,
      id: client.requestID, microseconds: (disk, microseconds),
      shared: known.isNegotiated ? policy.sharedFields.negotiated : policy.sharedFields.others)
    let response: Response
    do throws(ImageError) {
      response = try Response(head: head, style: .block, body: variant.body)
    } catch {
      return nil
    }
    figures.missLatency.record(microseconds: microseconds)
    figures.stages.record(diskMicroseconds: disk)
    figures.outcomes.add(.hit(.disk))
    remember(client, known, on: connection)
    if policy.logsDiskHits {
      log(
        .hit(.disk, status: status, bytes: variant.body.count, of: client),
        of: client, on: connection)
    }
    return queue(response, status: status, bytes: variant.body.count, to: client, on: connection)
  }

  /// Returns the request of a plain target, with the client's formats.
  private func request(of client: Connection, on connection: OpaquePointer) -> ImageRequest? {
    guard let target = client.target, case .success(let request) = target.request else {
      return nil
    }
    return client.adapted(request, of: target, on: connection)
  }
}

extension ResponseHead {
  /// Creates the head of a disk hit, which depends on nothing but target and `Accept`.
  ///
  /// - Parameters:
  ///   - stem: the file name without extension, in plain characters.
  ///   - microseconds: the time of the read, and of the request so far.
  init(
    ofDiskHit info: VariantInfo, named stem: String, date: UnsafePointer<UInt8>, now: UnixTime,
    id: RequestID, microseconds: (disk: Int, total: Int), shared: [UInt8]
  ) {
    self.init(date: date, id: id)
    append("\r\nServer-Timing: disk;dur=")
    append(microseconds: microseconds.disk)
    append(", total;dur=")
    append(microseconds: microseconds.total)
    addAge(of: info.freshness, at: now, isPrivate: false, until: nil)
    addContent(of: info)
    if let image = info.image {
      append("\r\nContent-Disposition: inline; filename=\"")
      append(stem)
      append(".")
      append(image.format.fileExtension)
      append("\"")
    }
    append(shared)
  }

  /// Returns the fields that all hits from disk have, as they are sent.
  static func sharedFields(
    _ configuration: ServerConfiguration, _ crossOrigin: CrossOrigin, vary: String?
  ) -> [UInt8] {
    var head = ResponseHead()
    head.add("Cache-Status", value: CacheStatus.hit(.disk).headerValue)
    if let vary { head.add("Vary", value: vary) }
    head.addCommon()
    configuration.addHints(to: &head)
    crossOrigin.addShared(to: &head)
    return head.bytes
  }
}
