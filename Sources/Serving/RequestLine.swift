// RequestLine: what the log says of a request, the same fields for all of them.

import Model
import Telemetry

/// One request that ended, for the log.
struct RequestLine {
  /// The id its client was told.
  let id: RequestID
  /// The method, displayable.
  let method: String
  /// The status it was answered with; 499 where nobody was there any more.
  let status: Int
  /// Bytes of the body.
  let bytes: Int
  /// The `Cache-Status` header.
  let cacheStatus: String?
  /// What went wrong.
  let error: ImageError?

  /// A client that left before its answer: nobody was told the id, but lines are told apart by it.
  static func gone(isHead: Bool) -> RequestLine {
    RequestLine(
      id: RequestID(), method: isHead ? "HEAD" : "GET", status: ImageError.cancelled.status,
      bytes: 0, cacheStatus: nil, error: .cancelled)
  }

  /// A body that came while it was sent: to its end, or cut for `error` when its status was long gone.
  static func streamed(_ streaming: Streaming, error: ImageError?) -> RequestLine {
    RequestLine(
      id: streaming.id, method: Method.get.name, status: 200, bytes: streaming.stream.sent,
      cacheStatus: streaming.cacheStatus, error: error)
  }
}

extension RequestHandler {
  /// Writes a request's line: faults of ours as errors, origins' and overload as warnings, what is asked all the time
  /// (memory hits, `/stats`) at debug, all else at info.
  func log(_ line: RequestLine, of client: Connection) {
    let isQuiet =
      client.target?.route == .stats
      || line.cacheStatus == CacheStatus.hit(.memory).headerValue
    switch line.status {
    case 500: log.error("request", fields(line, of: client))
    case _ where isQuiet: log.debug("request", fields(line, of: client))
    case 502...599: log.warning("request", fields(line, of: client))
    default: log.info("request", fields(line, of: client))
    }
  }

  private func fields(
    _ line: RequestLine, of client: Connection
  ) -> KeyValuePairs<String, LogValue> {
    var url: String?
    if case .success(let request)? = client.target?.request { url = request.source.text }
    return [
      "method": .string(line.method),
      "path": .string(displayable(client.target?.path ?? "")),
      "url": .string(ifPresent: url), "status": .int(line.status), "bytes": .int(line.bytes),
      "duration_ms": .milliseconds(.microseconds(client.elapsedMicroseconds)),
      "cache": .string(ifPresent: line.cacheStatus), "error": .string(ifPresent: line.error?.code),
      "detail": .string(ifPresent: line.error.map { $0.logDetail ?? $0.message }),
      "request_id": .string(line.id.description),
    ]
  }
}
