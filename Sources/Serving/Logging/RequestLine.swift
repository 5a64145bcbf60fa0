// RequestLine: the log line of a request.

import Model
import Telemetry

/// Which answers have a line at level info; failures always have theirs, all others have one at debug.
public enum LoggedRequests: String, Sendable {
  /// All of them, memory hits and `/stats` included.
  case all
  /// All but memory hits and `/stats`.
  case misses
  /// Failures alone: status 400 and above, and answers that were cut.
  case errors
}

/// One request that ended, for the log.
struct RequestLine {
  /// The method, displayable.
  let method: String
  /// The response status; 499 if the client disconnected.
  let status: Int
  /// Bytes of the body.
  let bytes: Int
  /// The value of the `Cache-Status` field.
  let cacheStatus: String?
  /// The error, if any.
  let error: ImageError?

  /// A client that left before its answer.
  static func gone(isHead: Bool) -> RequestLine {
    RequestLine(
      method: isHead ? "HEAD" : "GET", status: ImageError.cancelled.status, bytes: 0,
      cacheStatus: nil, error: .cancelled)
  }

  /// Creates the line for a streamed response. `error` is set if the body was cut off after its
  /// status was sent.
  static func streamed(_ streaming: Streaming, error: ImageError?) -> RequestLine {
    RequestLine(
      method: Method.get.name, status: 200, bytes: streaming.stream.sent,
      cacheStatus: streaming.cacheStatus, error: error)
  }
}

/// A request line that is no request's, for the log.
struct RefusedLine {
  /// Most bytes that are looked at: those of the longest target and the method in front of it.
  static let longest = RequestFraming.longestTarget + RequestFraming.longestMethod
  /// Most characters of what is no request line at all, such as the beginning of a TLS handshake.
  private static let longestGarbage = 60

  /// The method, where there is one.
  let method: String?
  /// The target; where there is none, what came in its place.
  let target: String

  /// Reads the first line of `bytes`, as far as it came.
  init(_ bytes: [UInt8]) {
    let line = bytes.prefix { $0 != 0x0d && $0 != 0x0a }
    // Masked as a whole, and as one that is cut: a blank or a line feed in a password ends the target before the sign
    // that tells it, and of what is too long the end did not come.
    let masked = SecretMask.maskedBeginning(String(decoding: line, as: UTF8.self))
    let words = masked.utf8.split(
      separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    guard words.count > 1, words[0].allSatisfy({ (0x41...0x5a).contains($0) }) else {
      (method, target) = (nil, displayable(masked, limit: Self.longestGarbage))
      return
    }
    (method, target) = (words[0].isEmpty ? nil : String(words[0]), String(words[1]) ?? "")
  }
}

extension RequestHandler {
  /// Writes a request's line: status 500 as an error, other faults of the server's side as warnings, all else at info.
  /// `loggedRequests` moves memory hits, requests to routine endpoints and successes to debug.
  func log(_ line: RequestLine, of client: Connection, on connection: OpaquePointer?) {
    let isQuiet =
      client.target?.endpoint?.isRoutine == true
      || line.cacheStatus == CacheStatus.hit(.memory).headerValue
    let isFailure = line.status >= 400 || line.error != nil
    let logged = configuration.loggedRequests
    switch line.status {
    case 500: log.error("request", fields(line, of: client, on: connection))
    case 502...599 where !isQuiet: log.warning("request", fields(line, of: client, on: connection))
    case _ where logged == .misses && isQuiet, _ where logged == .errors && !isFailure:
      log.debug("request", fields(line, of: client, on: connection))
    default: log.info("request", fields(line, of: client, on: connection))
    }
  }

  private func fields(
    _ line: RequestLine, of client: Connection, on connection: OpaquePointer?
  ) -> KeyValuePairs<String, LogValue> {
    var url: String?
    if case .success(let request)? = client.target?.request { url = request.source.text }
    let header = LoggedHeader(on: connection)
    let address = client.peer.map {
      configuration.trustedProxies.client(
        of: $0, forwardedFor: header.forwardedFor, forwarded: header.forwarded)
    }
    return [
      "method": .string(line.method),
      "target": .string(String(decoding: client.target?.raw ?? [], as: UTF8.self)),
      "url": .string(ifPresent: url), "status": .int(line.status), "bytes": .int(line.bytes),
      "duration_ms": .milliseconds(.microseconds(client.elapsedMicroseconds)),
      "cache": .string(ifPresent: line.cacheStatus), "error": .string(ifPresent: line.error?.code),
      "detail": .string(ifPresent: line.error.map { $0.logDetail ?? $0.message }),
      "client": .string(ifPresent: address?.description),
      "user_agent": .string(ifPresent: header.userAgent),
      "request_id": .string(client.requestID.description),
      "trace_id": .string(ifPresent: header.traceID),
    ]
  }
}
