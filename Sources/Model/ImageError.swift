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
  /// The HTTP status (RFC 9110). 499, nginx's "client closed request", is only logged.
  public var status: Int {
    switch self {
    case .invalidURL, .invalidParameter, .unknownParameter, .missingParameter, .malformedRequest:
      400
    case .unauthorized: 401
    case .forbiddenSource, .forbiddenParameter, .unsignedParameter, .invalidSignature,
      .expiredSignature, .insufficientScope:
      403
    case .notFound, .sourceNotFound: 404
    case .methodNotAllowed: 405
    case .superseded: 409
    case .sourceTooLarge, .bodyTooLarge, .tooManyLines: 413
    case .targetTooLong: 414
    case .unsupportedFormat, .unsupportedKind: 415
    case .undecodable, .tooManyPixels, .tooManyFrames, .tooCostly: 422
    case .tooManyAttempts, .rateLimited: 429
    case .headTooLarge: 431
    case .cancelled: 499
    case .internal: 500
    case .sourceUnreachable, .sourceError, .sourceIncomplete, .sourceTLS, .tooManyRedirects: 502
    case .overloaded, .outOfMemory, .draining, .revoked: 503
    case .sourceTimeout, .deadlineExceeded, .imagingTimeout, .notCached: 504
    case .unsupportedVersion: 505
    case .watermark(let cause): cause.isRefusal ? 502 : cause.status
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.status
    }
  }

  /// The public error code.
  public var code: String {
    switch self {
    case .invalidURL: "invalid_url"
    case .invalidParameter: "invalid_parameter"
    case .unknownParameter: "unknown_parameter"
    case .missingParameter: "missing_parameter"
    case .malformedRequest: "malformed_request"
    case .targetTooLong: "target_too_long"
    case .headTooLarge: "header_too_large"
    case .unsupportedVersion: "unsupported_version"
    case .unauthorized: "unauthorized"
    case .insufficientScope: "insufficient_scope"
    case .tooManyAttempts, .rateLimited: "rate_limited"
    case .forbiddenParameter, .unsignedParameter: "forbidden_parameter"
    case .invalidSignature: "invalid_signature"
    case .expiredSignature: "expired_signature"
    case .forbiddenSource: "forbidden_source"
    case .notFound: "not_found"
    case .sourceNotFound: "source_not_found"
    case .methodNotAllowed: "method_not_allowed"
    case .superseded: "superseded"
    case .bodyTooLarge: "body_too_large"
    case .tooManyLines: "too_many_lines"
    case .sourceTooLarge: "source_too_large"
    case .unsupportedFormat, .unsupportedKind: "unsupported_format"
    case .undecodable: "undecodable"
    case .tooManyPixels: "too_many_pixels"
    case .tooManyFrames: "too_many_frames"
    case .tooCostly: "too_costly"
    case .internal: "internal"
    case .sourceUnreachable: "source_unreachable"
    case .sourceError: "source_error"
    case .sourceIncomplete: "source_incomplete"
    case .sourceTLS: "source_tls"
    case .tooManyRedirects: "too_many_redirects"
    case .overloaded, .outOfMemory: "overloaded"
    case .draining: "draining"
    case .revoked: "overloaded"
    case .sourceTimeout: "source_timeout"
    case .deadlineExceeded, .imagingTimeout: "deadline_exceeded"
    case .notCached: "not_cached"
    case .cancelled: "cancelled"
    case .watermark(let cause): cause.isRefusal ? "source_error" : cause.code
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.code
    }
  }

  /// The message for clients: what was wrong, with which value, and what is allowed. Secrets are
  /// masked.
  public var message: String { SecretMask.masked(wording) }

  private var wording: String {
    switch self {
    case .invalidURL(let url, let reason): "the URL '\(url)' cannot be used: \(reason)"
    case .invalidParameter(let name, let value, let allowed):
      "\(name)='\(value)' is not allowed: \(allowed)"
    case .unknownParameter(let name, let hint): "unknown parameter '\(name)'\(hint)"
    case .missingParameter(let name): "the parameter '\(name)' is required"
    case .malformedRequest(let reason): "malformed request: \(reason)"
    case .targetTooLong(let limit): "the request target has more than \(limit) bytes"
    case .headTooLarge(let limit):
      "the request header has more than \(limit) bytes, or too many fields or parameters"
    case .unsupportedVersion: "unsupported HTTP version; HTTP/1.0 and HTTP/1.1 are supported"
    case .unauthorized:
      "missing or invalid token: this path requires 'Authorization: Bearer' with an operator's token"
    case .insufficientScope(let scope): "the token lacks the scope '\(scope)', which this needs"
    case .tooManyAttempts(let seconds):
      "too many wrong tokens came from this address; try again in \(seconds) s"
    case .rateLimited(let limit, let seconds): "\(limit.wording); try again in \(seconds) s"
    case .forbiddenParameter(let name): "the parameter '\(name)' is not allowed here"
    case .unsignedParameter(let name, _):
      "the parameter '\(name)' is not allowed without a signature"
    case .invalidSignature(let reason): "the signature is not valid: \(reason)"
    case .expiredSignature(let seconds): "the URL was valid until exp=\(seconds)"
    case .forbiddenSource(let reason, _, _): "the source may not be fetched: \(reason)"
    case .notFound(let path): "not found: '\(path)'"
    case .sourceNotFound(let status): "the source does not exist (\(status))"
    case .methodNotAllowed(let method, let allowed): "method \(method) is not allowed: \(allowed)"
    case .superseded: "superseded by a later request with the same operation key"
    case .bodyTooLarge(let limit, _): "the request body has more than \(limit) bytes"
    case .tooManyLines(let limit): "the list has more than \(limit) images"
    case .sourceTooLarge(let limit, _): "the source has more than \(limit) bytes"
    case .unsupportedFormat: "the source has no supported image format"
    case .unsupportedKind(let reason): "the source has an unsupported kind of its format: \(reason)"
    case .undecodable: "the source cannot be decoded as an image"
    case .tooManyPixels(let pixels, let limit):
      "the source has \(pixels) pixels; at most \(limit) are allowed"
    case .tooManyFrames(let frames, let limit):
      "the source has \(frames) frames; at most \(limit) are allowed"
    case .tooCostly(let reason, _): "the image is too costly to process: \(reason)"
    case .internal: "internal error; the log line with this request id has the details"
    case .sourceUnreachable: "the origin cannot be reached"
    case .sourceError(let status, _, _): "the origin responded with status \(status)"
    case .sourceIncomplete: "the origin ended the transfer before the image was complete"
    case .sourceTLS: "the TLS handshake with the origin failed"
    case .tooManyRedirects(let limit): "the origin redirects more than \(limit) times"
    case .overloaded(let queue, let seconds):
      "overloaded: \(Self.shortage(of: queue)); try again in \(seconds) s"
    case .outOfMemory:
      "overloaded: not enough memory for this image; try again in \(Self.memoryRetry) s"
    case .draining: "the server is shutting down"
    case .revoked: "an operator cancelled all work; try again"
    case .sourceTimeout: "the origin exceeded a time-out"
    case .deadlineExceeded: "the request exceeded its deadline"
    case .imagingTimeout: "processing the image exceeded its deadline"
    case .notCached: "not in cache: only a cached response is allowed"
    case .cancelled: "the client disconnected"
    case .watermark(let cause): "the watermark cannot be used: \(cause.message)"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.message
    }
  }

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
