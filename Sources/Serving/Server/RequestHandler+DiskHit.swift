// RequestHandler+DiskHit: responds to requests from disk, in front of the endpoints.

import CMicrohttpd
import Core

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
  ///   - date: `now` as an HTTP date.
  ///   - microseconds: the time of the read, and of the request so far.
  ///   - shared: `sharedFields`.
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
