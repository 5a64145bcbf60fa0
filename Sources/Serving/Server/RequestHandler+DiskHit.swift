// RequestHandler+DiskHit: responds to requests from disk, in front of the endpoints.

import CMicrohttpd
import Model
import Telemetry

extension RequestHandler {
  /// Responds to a complete request with a fresh small variant that the kernel has cached, after
  /// `respondFromMemory` missed. Returns `nil` without such a variant, or if more than target and
  /// `Accept` decides about the response; the endpoint then looks again.
  ///
  /// As a memory hit, it needs neither the parsed request nor a copy of it: a cache key and a file
  /// name (`PlainTarget`). The response's head is written in one pass.
  func respondFromDisk(to client: Connection, on connection: OpaquePointer) -> MHD_Result? {
    let policy = client.policy
    guard policy.configuration.headStyle == .block, !isDraining, !policy.crossOrigin.isPerClient,
      mayHit(client, on: connection), !client.trace.isRecorded,
      let plain = plainTarget(of: client, on: connection)
    else { return nil }
    let start = Clock.nanoseconds()
    guard
      let variant = provider.variantOnDisk(
        for: plain.key, of: { request(of: client, on: connection) }),
      case .memory = variant.body
    else { return nil }
    let end = Clock.nanoseconds()
    let status = isNotModified(variant.info, on: connection) ? 304 : 200
    let microseconds = (end - client.startedAt) / 1_000
    let disk = (end - start) / 1_000
    let now = Clock.now()
    let head = ResponseHead(
      ofDiskHit: variant.info, named: plain.stem, date: client.loop.date(now), now: now,
      id: client.requestID, microseconds: (disk, microseconds),
      shared: plain.isNegotiated ? policy.sharedFields.negotiated : policy.sharedFields.others)
    let response: Response
    do throws(ImageError) {
      response = try Response(head: head, style: .block, body: variant.body)
    } catch {
      return nil
    }
    figures.missLatency.record(microseconds: microseconds)
    figures.stages.record(diskMicroseconds: disk)
    figures.outcomes.add(.hit(.disk))
    remember(client, on: connection)
    if policy.logsDiskHits {
      log(
        RequestLine(
          method: client.method == .head ? "HEAD" : "GET", status: status,
          bytes: client.bodyBytes(status: status, of: variant.body.count),
          cacheStatus: CacheStatus.hit(.disk).headerValue, error: nil),
        of: client, on: connection)
    }
    return queue(response, status: status, bytes: variant.body.count, to: client, on: connection)
  }

  /// Returns the request of a plain target, with the client's formats.
  private func request(of client: Connection, on connection: OpaquePointer) -> ImageRequest? {
    guard let target = client.target, case .success(let request) = target.request else {
      return nil
    }
    return target.isNegotiated
      ? client.policy.rules.request(
        request, accepting: client.loop.accept.formats(on: connection)) : request
  }
}
