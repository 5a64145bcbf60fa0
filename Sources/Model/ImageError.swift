// ImageError: all request failures, with their status codes and messages.

/// Why a request has no image. Each case has a status, a code, a public message and an optional log
/// detail.
///
/// Public messages never contain a path of the host, a resolved address or a secret.
public enum ImageError: Error, Hashable, Sendable {
  // 400
  /// `url` is unusable. The reason completes "the URL cannot be used: …".
  case invalidURL(String, reason: String)
  /// A parameter has an invalid value; `allowed` describes the valid ones.
  case invalidParameter(name: String, value: String, allowed: String)
  /// The parameter does not exist. The hint ends the message, such as `; did you mean w?`.
  case unknownParameter(String, hint: String = "")
  /// A required parameter is missing.
  case missingParameter(String)
  /// The request is not valid HTTP/1.1 or is ambiguous; the value gives the reason.
  case malformedRequest(String)
  /// A door refused the address; the status is the peer's.
  case refusedAtDoor(DoorAnswer)
  // 401
  /// An operator's endpoint was called without a valid token.
  case unauthorized
  // 403
  /// The operator's token lacks this scope.
  case insufficientScope(String)
  /// Clients may not use this parameter.
  case forbiddenParameter(String)
  /// Requests without a signature may not use this parameter; `key` is the key that decides.
  case unsignedParameter(String, key: String)
  /// The signature is missing or wrong. The reason completes "the signature is not valid: …".
  case invalidSignature(reason: String)
  /// The signature was valid until `exp`, in Unix seconds.
  case expiredSignature(Int)
  /// The source may not be fetched: scheme, host or address; the reason is public, the detail is
  /// logged, and so is the key of the configuration that would allow it.
  case forbiddenSource(reason: String, detail: String, key: String? = nil)
  // 404
  /// No endpoint has this path.
  case notFound(path: String)
  /// The origin responded with 404 or 410, or the local file does not exist.
  case sourceNotFound(status: Int)
  // 405
  /// The endpoint does not support the method; `allowed` is the `Allow` header field.
  case methodNotAllowed(method: String, allowed: String)
  // 409
  /// A later request of the same client with the same operation key replaced this one.
  case superseded
  // 413
  /// The request body exceeds the byte limit; `key` is the key that decides, if there is one.
  case bodyTooLarge(limit: Int, key: String? = nil)
  /// A prefetch list exceeds the line limit.
  case tooManyLines(limit: Int)
  /// The source exceeds the byte limit of the configuration's `key`.
  case sourceTooLarge(limit: Int, key: String = "download.maximum_bytes")
  // 414
  /// The request target exceeds the byte limit.
  case targetTooLong(limit: Int)
  // 415
  /// The format is unknown or disabled.
  case unsupportedFormat(detail: String)
  /// The format is supported, but not this kind of it, such as a palette in a JPEG 2000. The reason
  /// says what is decoded, and everyone may read it.
  case unsupportedKind(reason: String)
  // 422
  /// The bytes cannot be decoded as an image.
  case undecodable(detail: String)
  /// The source exceeds the pixel limit.
  case tooManyPixels(pixels: Int, limit: Int)
  /// The source exceeds the frame limit.
  case tooManyFrames(frames: Int, limit: Int)
  /// The source is too expensive to process. The reason completes "the image is too costly to
  /// process: …". `key` is the configuration's that decides, if one does.
  case tooCostly(reason: String, key: String? = nil)
  // 429
  /// The client's network sent too many wrong tokens; `retryAfter` is in seconds.
  case tooManyAttempts(retryAfter: Int)
  /// The client used up its share; `retryAfter` is in seconds.
  case rateLimited(by: RateLimit, retryAfter: Int)
  // 431
  /// The request head exceeds a limit for bytes, fields or parameters.
  case headTooLarge(limit: Int)
  // 500
  /// An internal error of Pictor.
  case `internal`(detail: String)
  // 502
  /// No connection to the origin: DNS failure, refused, or reset before a response. A name whose
  /// address is refused looks the same to clients; then `key` is the configuration key that would
  /// allow it.
  case sourceUnreachable(detail: String, key: String? = nil)
  /// The origin responded with a status other than 200, 404 or 410. `retryAfter` is its
  /// `Retry-After` in seconds, if present; the detail is the code in an object store's body.
  case sourceError(status: Int, retryAfter: Int? = nil, detail: String? = nil)
  /// The transfer ended before the body was complete.
  case sourceIncomplete(detail: String)
  /// The TLS handshake with the origin failed.
  case sourceTLS(detail: String)
  /// The origin exceeds the redirect limit.
  case tooManyRedirects(limit: Int)
  // 503
  /// A queue is full; `retryAfter` is in seconds.
  case overloaded(queue: String, retryAfter: Int)
  /// An imaging worker could not allocate the memory for the image.
  case outOfMemory(detail: String)
  /// The server is shutting down.
  case draining
  /// An operator cancelled all work.
  case revoked
  // 504
  /// The request allows only cached responses, and none is suitable.
  case notCached
  /// The origin exceeded a time-out; `key` is the configuration's that decides, if one does.
  case sourceTimeout(detail: String, key: String? = nil)
  /// The request exceeded its deadline.
  case deadlineExceeded
  /// The image exceeded the deadline of its imaging job.
  case imagingTimeout
  // 505
  /// The request uses an unsupported major version of HTTP.
  case unsupportedVersion
  // Never sent, because no client waits.
  /// All participants have left.
  case cancelled
  // Wrappers.
  /// The watermark failed, not the source.
  indirect case watermark(ImageError)
  /// One variant failed; other variants of the source may succeed.
  indirect case ofVariant(ImageError)
  /// A negatively cached failure (SDWebImage's failed URLs).
  ///
  /// - `seconds`: how long other caches may keep the failure.
  /// - `clientSeconds`: the lifetime in private caches, if it differs.
  /// - `isRepeated`: whether the failure comes from the cache, without a new attempt.
  indirect case remembered(
    ImageError, seconds: Int, clientSeconds: Int? = nil, isRepeated: Bool)
}

extension ImageError {
  /// The underlying failure, without the wrappers `remembered` and `ofVariant`.
  public var cause: ImageError {
    switch self {
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.cause
    default: self
    }
  }

  /// Whether the source itself is at fault: it cannot be decoded or exceeds a limit for every
  /// variant. Failures that depend on parameters, encoders, memory or a lost worker are not the
  /// source's.
  public var isOfSource: Bool {
    switch self {
    case .undecodable, .unsupportedFormat, .unsupportedKind, .tooManyPixels, .tooManyFrames,
      .tooCostly:
      true
    default: false
    }
  }

  /// The parameter at fault, if any.
  public var parameter: String? {
    switch self {
    case .invalidURL, .forbiddenSource: "url"
    case .invalidParameter(let name, _, _), .unknownParameter(let name, _),
      .missingParameter(let name), .forbiddenParameter(let name), .unsignedParameter(let name, _):
      name
    case .invalidSignature: "sig"
    case .expiredSignature: "exp"
    case .watermark: "watermark"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.parameter
    default: nil
    }
  }

  /// Marks the failure as one of a watermark. Failures that concern no image stay unchanged.
  public var ofWatermark: ImageError {
    if case .ofVariant(let cause) = self { return .ofVariant(cause.ofWatermark) }
    return switch cause {
    case .cancelled, .overloaded, .rateLimited, .outOfMemory, .draining, .revoked,
      .deadlineExceeded, .imagingTimeout, .notCached, .internal, .watermark:
      self
    default: .watermark(cause)
    }
  }

  /// Whether the error refuses a source. For a watermark this becomes a 502, because the client
  /// does not choose the watermark's origin.
  fileprivate var isRefusal: Bool {
    switch self {
    case .sourceNotFound, .forbiddenSource, .sourceTooLarge: true
    default: false
    }
  }
}

extension ImageError {
  /// The codes of responses.
  public static let codes = Code.allCases.filter { $0 != .cancelled }.map(\.rawValue)

  /// All codes; `cancelled` is only logged.
  private enum Code: String, CaseIterable {
    case invalidURL = "invalid_url", invalidParameter = "invalid_parameter"
    case unknownParameter = "unknown_parameter", missingParameter = "missing_parameter"
    case malformedRequest = "malformed_request", refusedAtDoor = "refused_at_door", unauthorized
    case insufficientScope = "insufficient_scope", forbiddenParameter = "forbidden_parameter"
    case invalidSignature = "invalid_signature", expiredSignature = "expired_signature"
    case forbiddenSource = "forbidden_source", notFound = "not_found"
    case sourceNotFound = "source_not_found", methodNotAllowed = "method_not_allowed"
    case superseded, bodyTooLarge = "body_too_large", tooManyLines = "too_many_lines"
    case sourceTooLarge = "source_too_large", targetTooLong = "target_too_long"
    case unsupportedFormat = "unsupported_format", undecodable
    case tooManyPixels = "too_many_pixels", tooManyFrames = "too_many_frames"
    case tooCostly = "too_costly", rateLimited = "rate_limited"
    case headerTooLarge = "header_too_large", cancelled, `internal`
    case sourceUnreachable = "source_unreachable", sourceError = "source_error"
    case sourceIncomplete = "source_incomplete", sourceTLS = "source_tls"
    case tooManyRedirects = "too_many_redirects", overloaded, draining
    case sourceTimeout = "source_timeout", deadlineExceeded = "deadline_exceeded"
    case notCached = "not_cached", unsupportedVersion = "unsupported_version"
  }

  /// The HTTP status (RFC 9110), the public code and the message of each error. 499, nginx's
  /// "client closed request", is only logged.
  private var answer: (status: Int, code: Code, message: String) {
    switch self {
    case .invalidURL(let url, let reason):
      (400, .invalidURL, "the URL '\(url)' cannot be used: \(reason)")
    case .invalidParameter(let name, let value, let allowed):
      (400, .invalidParameter, "\(name)='\(value)' is not allowed: \(allowed)")
    case .unknownParameter(let name, let hint):
      (400, .unknownParameter, "unknown parameter '\(name)'\(hint)")
    case .missingParameter(let name):
      (400, .missingParameter, "the parameter '\(name)' is required")
    case .malformedRequest(let reason): (400, .malformedRequest, "malformed request: \(reason)")
    case .refusedAtDoor(let answer): (answer.status, .refusedAtDoor, answer.reason)
    case .unauthorized:
      (
        401, .unauthorized,
        "missing or invalid token: this path requires 'Authorization: Bearer' with an operator's token"
      )
    case .insufficientScope(let scope):
      (403, .insufficientScope, "the token lacks the scope '\(scope)', which this needs")
    case .forbiddenParameter(let name):
      (403, .forbiddenParameter, "the parameter '\(name)' is not allowed here")
    case .unsignedParameter(let name, _):
      (403, .forbiddenParameter, "the parameter '\(name)' is not allowed without a signature")
    case .invalidSignature(let reason):
      (403, .invalidSignature, "the signature is not valid: \(reason)")
    case .expiredSignature(let seconds):
      (403, .expiredSignature, "the URL was valid until exp=\(seconds)")
    case .forbiddenSource(let reason, _, _):
      (403, .forbiddenSource, "the source may not be fetched: \(reason)")
    case .notFound(let path): (404, .notFound, "not found: '\(path)'")
    case .sourceNotFound(let status):
      (404, .sourceNotFound, "the source does not exist (\(status))")
    case .methodNotAllowed(let method, let allowed):
      (405, .methodNotAllowed, "method \(method) is not allowed: \(allowed)")
    case .superseded:
      (409, .superseded, "superseded by a later request with the same operation key")
    case .bodyTooLarge(let limit, _):
      (413, .bodyTooLarge, "the request body has more than \(limit) bytes")
    case .tooManyLines(let limit):
      (413, .tooManyLines, "the list has more than \(limit) images")
    case .sourceTooLarge(let limit, _):
      (413, .sourceTooLarge, "the source has more than \(limit) bytes")
    case .targetTooLong(let limit):
      (414, .targetTooLong, "the request target has more than \(limit) bytes")
    case .unsupportedFormat:
      (415, .unsupportedFormat, "the source has no supported image format")
    case .unsupportedKind(let reason):
      (415, .unsupportedFormat, "the source has an unsupported kind of its format: \(reason)")
    case .undecodable: (422, .undecodable, "the source cannot be decoded as an image")
    case .tooManyPixels(let pixels, let limit):
      (422, .tooManyPixels, "the source has \(pixels) pixels; at most \(limit) are allowed")
    case .tooManyFrames(let frames, let limit):
      (422, .tooManyFrames, "the source has \(frames) frames; at most \(limit) are allowed")
    case .tooCostly(let reason, _):
      (422, .tooCostly, "the image is too costly to process: \(reason)")
    case .tooManyAttempts(let seconds):
      (
        429, .rateLimited,
        "too many wrong tokens came from this address; try again in \(seconds) s"
      )
    case .rateLimited(let limit, let seconds):
      (429, .rateLimited, "\(limit.wording); try again in \(seconds) s")
    case .headTooLarge(let limit):
      (
        431, .headerTooLarge,
        "the request header has more than \(limit) bytes, or too many fields or parameters"
      )
    case .cancelled: (499, .cancelled, "the client disconnected")
    case .internal:
      (500, .internal, "internal error; the log line with this request id has the details")
    case .sourceUnreachable: (502, .sourceUnreachable, "the origin cannot be reached")
    case .sourceError(let status, _, _):
      (502, .sourceError, "the origin responded with status \(status)")
    case .sourceIncomplete:
      (502, .sourceIncomplete, "the origin ended the transfer before the image was complete")
    case .sourceTLS: (502, .sourceTLS, "the TLS handshake with the origin failed")
    case .tooManyRedirects(let limit):
      (502, .tooManyRedirects, "the origin redirects more than \(limit) times")
    case .overloaded(let queue, let seconds):
      (503, .overloaded, "overloaded: \(Self.shortage(of: queue)); try again in \(seconds) s")
    case .outOfMemory:
      (
        503, .overloaded,
        "overloaded: not enough memory for this image; try again in \(Self.memoryRetry) s"
      )
    case .draining: (503, .draining, "the server is shutting down")
    case .revoked: (503, .overloaded, "an operator cancelled all work; try again")
    case .sourceTimeout: (504, .sourceTimeout, "the origin exceeded a time-out")
    case .deadlineExceeded: (504, .deadlineExceeded, "the request exceeded its deadline")
    case .imagingTimeout:
      (504, .deadlineExceeded, "processing the image exceeded its deadline")
    case .notCached: (504, .notCached, "not in cache: only a cached response is allowed")
    case .unsupportedVersion:
      (
        505, .unsupportedVersion,
        "unsupported HTTP version; HTTP/1.0 and HTTP/1.1 are supported"
      )
    case .watermark(let cause):
      (
        cause.isRefusal ? 502 : cause.status, cause.isRefusal ? .sourceError : cause.answer.code,
        "the watermark cannot be used: \(cause.message)"
      )
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.answer
    }
  }

  /// The HTTP status.
  public var status: Int { answer.status }

  /// The public error code.
  public var code: String { answer.code.rawValue }

  /// The message for clients: what was wrong, with which value, and what is allowed. Secrets are
  /// masked.
  public var message: String { SecretMask.masked(answer.message) }

  /// Additional text for operators: a detail, the key that decides, or both; `nil` if there is
  /// neither. Secrets are masked.
  public var logDetail: String? { unmaskedDetail.map(SecretMask.masked) }

  private var unmaskedDetail: String? {
    switch self {
    case .forbiddenSource(_, let detail, _), .unsupportedFormat(let detail),
      .undecodable(let detail), .internal(let detail), .outOfMemory(let detail),
      .sourceUnreachable(let detail, _),
      .sourceIncomplete(let detail), .sourceTLS(let detail), .sourceTimeout(let detail, _):
      let text = detail.isEmpty && decidingKey != nil ? message : detail
      return text.isEmpty ? nil : text + hint
    case .sourceError(_, _, let detail?): return detail
    case .watermark(let cause):
      return "watermark: \(cause.logDetail ?? cause.message)"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): return cause.logDetail
    default: return decidingKey.map { _ in message + hint }
    }
  }

  /// Seconds for `Retry-After`, if the failure is temporary.
  public var retryAfter: Int? {
    switch self {
    case .overloaded(_, let seconds), .tooManyAttempts(let seconds), .rateLimited(_, let seconds):
      seconds
    case .outOfMemory: Self.memoryRetry
    case .draining, .revoked: 1
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.retryAfter
    default: nil
    }
  }

  /// `Retry-After` for memory shortage, in seconds: large jobs run for seconds.
  private static let memoryRetry = 5
}

extension ImageError {
  /// The key whose value caused the failure; `nil` if no key would prevent it.
  public var decidingKey: String? {
    switch self {
    case .forbiddenSource(_, _, let key), .sourceUnreachable(_, let key),
      .sourceTimeout(_, let key), .tooCostly(_, let key), .bodyTooLarge(_, let key):
      key
    case .forbiddenParameter(let name): Self.keyForbidding(name)
    case .unsignedParameter(_, let key): key
    case .invalidSignature: "signing.keys"
    case .sourceTooLarge(_, let key): key
    case .tooManyPixels: "imaging.maximum_pixels"
    case .tooManyFrames: "imaging.maximum_frames"
    case .outOfMemory: "imaging.worker_memory"
    case .deadlineExceeded: "server.request_timeout"
    case .imagingTimeout: "imaging.deadline"
    case .overloaded(let queue, _): Self.keysOfQueues[queue]
    case .rateLimited(let limit, _): limit.key
    case .watermark(let cause), .remembered(let cause, _, _, _), .ofVariant(let cause):
      cause.decidingKey
    default: nil
    }
  }

  /// `message` with the reason and the key that decides, if known: for `server.explain_errors`.
  public var explainedMessage: String {
    message + (reason.isEmpty ? "" : ": " + SecretMask.masked(reason)) + hint
  }

  /// What curl, the origin or the decoder says of the failure; empty if it says nothing.
  private var reason: String {
    switch cause {
    // With a key, the detail has the address behind a name, which is not public.
    case .sourceUnreachable(let detail, nil), .sourceTimeout(let detail, _),
      .sourceIncomplete(let detail), .sourceTLS(let detail), .sourceError(_, _, let detail?),
      .unsupportedFormat(let detail), .undecodable(let detail):
      detail
    case .watermark(let cause): cause.reason
    default: ""
    }
  }

  /// The note that is appended to messages for operators; empty if no key decides.
  var hint: String { decidingKey.map { " (see \($0) in the configuration)" } ?? "" }

  private static func keyForbidding(_ parameter: String) -> String? {
    switch parameter {
    case "refresh", "cache", "retry", "store", "detach", "priority": "server.allow"
    case _ where Sizing.enlarging.contains(parameter):
      "server.allow_enlarge or server.presets_only"
    case "url", "preset": nil
    default: "server.presets_only"
    }
  }

  /// Returns what an `overloaded` error says of its queue.
  static func shortage(of queue: String) -> String {
    switch queue {
    case "memory": "memory for images is at its limit"
    case "download memory": "memory for downloads is at its limit"
    case "download time": "the download waited too long for its turn"
    default: "the \(queue) queue is at its limit"
    }
  }

  private static let keysOfQueues = [
    "memory": "memory.budget", "download memory": "memory.budget",
    "download time": "download.timeout",
    "stalled downloads": "download.limit",
    "requests": "server.active_requests", "imaging": "imaging.queue_limit",
    "download": "download.queue_limit",
  ]
}

/// A limit of what one client may have done.
public enum RateLimit: String, Hashable, Sendable {
  /// Requests that wait for an image at once.
  case activeRequests = "active_requests"
  /// Imaging time in a minute.
  case imagingTime = "imaging_time"
  /// Images that wait for a worker at once.
  case imagingQueue = "imaging_queue"
  /// Requests per second.
  case requests
  /// Open connections at once.
  case connections

  /// The configuration key of the limit.
  public var key: String {
    switch self {
    case .activeRequests: "server.active_requests_per_client"
    case .imagingTime: "server.imaging_time_per_client"
    case .imagingQueue: "imaging.queue_limit"
    case .requests: "server.requests_per_second"
    case .connections: "server.connections_per_client"
    }
  }

  /// What the client did, for a message.
  var wording: String {
    switch self {
    case .activeRequests: "too many requests of this client wait for images"
    case .imagingTime: "this client's images took too much imaging time"
    case .imagingQueue: "too many images of this client wait for a worker"
    case .requests: "this client sent too many requests"
    case .connections: "this client has too many open connections"
    }
  }
}
