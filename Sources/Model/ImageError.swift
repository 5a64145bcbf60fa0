// ImageError: everything that can go wrong with a request, and the only place that knows its status and wording.

/// Why a request has no image. Each case has a code and a status of the contract, a public message, and a log line
/// that may say more: what is answered never holds a path of the host, an address behind a name, or a secret.
public enum ImageError: Error, Hashable, Sendable {
  // 400
  /// `url` cannot be used; the reason completes "the URL cannot be used: …".
  case invalidURL(String, reason: String)
  /// A parameter's value is not allowed; `allowed` says what is.
  case invalidParameter(name: String, value: String, allowed: String)
  /// A parameter the contract does not have.
  case unknownParameter(String)
  /// A required parameter is absent.
  case missingParameter(String)
  /// The bytes of a request are not HTTP/1.1, or can be read in more than one way; what is wrong.
  case malformedRequest(String)
  // 401
  /// An operator's path without an operator's token.
  case unauthorized
  // 403
  /// A parameter that clients may not use here.
  case forbiddenParameter(String)
  /// The source may not be fetched: scheme, host or address; the reason is public, the detail is logged, and so is the
  /// key of the configuration that would allow it.
  case forbiddenSource(reason: String, detail: String, key: String? = nil)
  // 404
  /// No such path here.
  case notFound(path: String)
  /// The origin said 404 or 410, or there is no such local file.
  case sourceNotFound(status: Int)
  // 405
  /// The path has no such method; `allowed` is the `Allow` header.
  case methodNotAllowed(method: String, allowed: String)
  // 409
  /// A later request of the same client with the same operation key took its place.
  case superseded
  // 413
  /// A request's body has more bytes than allowed.
  case bodyTooLarge(limit: Int)
  /// A list has more lines than allowed.
  case tooManyLines(limit: Int)
  /// The source has more bytes than allowed.
  case sourceTooLarge(limit: Int)
  // 414
  /// A request's target has more bytes than allowed.
  case targetTooLong(limit: Int)
  // 415
  /// The bytes are of no known format, or of one that is turned off.
  case unsupportedFormat(detail: String)
  // 422
  /// The bytes look like an image and cannot be decoded.
  case undecodable(detail: String)
  /// More pixels than allowed.
  case tooManyPixels(pixels: Int, limit: Int)
  /// More frames than allowed.
  case tooManyFrames(frames: Int, limit: Int)
  /// It takes more work than allowed; the reason completes "the source takes too much work: …".
  case tooCostly(reason: String)
  // 431
  /// A request's head has more bytes, fields or parameters than there is room for.
  case headTooLarge(limit: Int)
  // 500
  /// A fault of Pictor's own.
  case `internal`(detail: String)
  // 502
  /// No connection: DNS, refused, reset before an answer.
  case sourceUnreachable(detail: String)
  /// The origin answered with another status than 200 (or 404, 410), and wants to be left alone for so many seconds where
  /// it says so (`Retry-After`).
  case sourceError(status: Int, retryAfter: Int? = nil)
  /// The transfer ended before the body was whole.
  case sourceIncomplete(detail: String)
  /// TLS to the origin failed.
  case sourceTLS(detail: String)
  /// More redirects than allowed.
  case tooManyRedirects(limit: Int)
  // 503
  /// A queue is full; try again after so many seconds.
  case overloaded(queue: String, retryAfter: Int)
  /// An imaging worker did not get the memory that the image takes.
  case outOfMemory(detail: String)
  /// The server is stopping.
  case draining
  /// An operator ended all work.
  case revoked
  // 504
  /// Only what is kept was wanted, and nothing is.
  case notCached
  /// The origin took too long.
  case sourceTimeout(detail: String)
  /// The answer took longer than a request may take.
  case deadlineExceeded
  // 505
  /// A request of another major version of HTTP.
  case unsupportedVersion
  // Not answered: nobody is there any more.
  /// Everyone who asked has gone.
  case cancelled
  // Of the second image
  /// What failed is the watermark, and no word about the source.
  indirect case watermark(ImageError)
  // Of one variant
  /// What failed is one variant of a source; other variants of it may do.
  indirect case ofVariant(ImageError)
  // Whatever it was
  /// A failure that is remembered (SDWebImage's failed URLs), for so many seconds more; `clientSeconds`: by clients' own
  /// caches, where that differs; `isRepeated`: of an earlier request, and nothing was tried again.
  indirect case remembered(
    ImageError, seconds: Int, clientSeconds: Int? = nil, isRepeated: Bool)
}

extension ImageError {
  /// What failed, whether or not it is remembered, of the source or of one variant alone.
  public var cause: ImageError {
    switch self {
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.cause
    default: self
    }
  }

  /// Whether the source itself is to blame: what it is made of cannot be decoded, or not within the limits, whichever
  /// variant is asked for. All that depends on a parameter, an encoder, memory or a lost worker is something else.
  public var isOfSource: Bool {
    switch self {
    case .undecodable, .unsupportedFormat, .tooManyPixels, .tooManyFrames, .tooCostly: true
    default: false
    }
  }
}

extension ImageError {
  /// The same as the failure of a watermark; what says nothing about any image stays what it is.
  public var ofWatermark: ImageError {
    if case .ofVariant(let cause) = self { return .ofVariant(cause.ofWatermark) }
    return switch cause {
    case .cancelled, .overloaded, .outOfMemory, .draining, .revoked, .deadlineExceeded, .notCached,
      .internal, .watermark:
      self
    default: .watermark(cause)
    }
  }

  /// Whether it says that an image is not to be had by asking for it in this way: as the failure of a watermark, of
  /// which a client need not know where it comes from, it is the server's side that failed.
  fileprivate var isRefusal: Bool {
    switch self {
    case .sourceNotFound, .forbiddenSource, .sourceTooLarge: true
    default: false
    }
  }
}

extension ImageError {
  /// The HTTP status (RFC 9110) this is answered with; 499, nginx's "client closed request", is only ever logged.
  public var status: Int {
    switch self {
    case .invalidURL, .invalidParameter, .unknownParameter, .missingParameter, .malformedRequest:
      400
    case .unauthorized: 401
    case .forbiddenSource, .forbiddenParameter: 403
    case .notFound, .sourceNotFound: 404
    case .methodNotAllowed: 405
    case .superseded: 409
    case .sourceTooLarge, .bodyTooLarge, .tooManyLines: 413
    case .targetTooLong: 414
    case .unsupportedFormat: 415
    case .undecodable, .tooManyPixels, .tooManyFrames, .tooCostly: 422
    case .headTooLarge: 431
    case .cancelled: 499
    case .internal: 500
    case .sourceUnreachable, .sourceError, .sourceIncomplete, .sourceTLS, .tooManyRedirects: 502
    case .overloaded, .outOfMemory, .draining, .revoked: 503
    case .sourceTimeout, .deadlineExceeded, .notCached: 504
    case .unsupportedVersion: 505
    case .watermark(let cause): cause.isRefusal ? 502 : cause.status
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.status
    }
  }

  /// The contract's `code`.
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
    case .forbiddenParameter: "forbidden_parameter"
    case .forbiddenSource: "forbidden_source"
    case .notFound: "not_found"
    case .sourceNotFound: "source_not_found"
    case .methodNotAllowed: "method_not_allowed"
    case .superseded: "superseded"
    case .bodyTooLarge: "body_too_large"
    case .tooManyLines: "too_many_lines"
    case .sourceTooLarge: "source_too_large"
    case .unsupportedFormat: "unsupported_format"
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
    case .deadlineExceeded: "deadline_exceeded"
    case .notCached: "not_cached"
    case .cancelled: "cancelled"
    case .watermark(let cause): cause.isRefusal ? "source_error" : cause.code
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.code
    }
  }

  /// What the client is told: what was wrong, with which value, what is allowed. Secrets in it are masked.
  public var message: String { SecretMask.masked(wording) }

  private var wording: String {
    switch self {
    case .invalidURL(let url, let reason): "the URL '\(url)' cannot be used: \(reason)"
    case .invalidParameter(let name, let value, let allowed):
      "\(name)='\(value)' is not allowed: \(allowed)"
    case .unknownParameter(let name): "there is no parameter '\(name)'"
    case .missingParameter(let name): "the parameter '\(name)' is required"
    case .malformedRequest(let reason): "the request cannot be understood: \(reason)"
    case .targetTooLong(let limit): "the request's target has more than \(limit) bytes"
    case .headTooLarge(let limit):
      "the request's header has more than \(limit) bytes, or too many fields or parameters"
    case .unsupportedVersion: "only HTTP/1.1 and HTTP/1.0 are spoken here"
    case .unauthorized: "this path needs 'Authorization: Bearer' with one of the operator's tokens"
    case .forbiddenParameter(let name): "the parameter '\(name)' may not be used here"
    case .forbiddenSource(let reason, _, _): "the source may not be fetched: \(reason)"
    case .notFound(let path): "there is nothing at '\(path)'"
    case .sourceNotFound(let status): "the source does not exist (\(status))"
    case .methodNotAllowed(let method, let allowed): "\(method) is not allowed here: \(allowed)"
    case .superseded: "a later request with the same operation key took its place"
    case .bodyTooLarge(let limit): "the body has more than \(limit) bytes"
    case .tooManyLines(let limit): "the list has more than \(limit) images"
    case .sourceTooLarge(let limit): "the source has more than \(limit) bytes"
    case .unsupportedFormat: "the source is of no supported image format"
    case .undecodable: "the source cannot be decoded as an image"
    case .tooManyPixels(let pixels, let limit):
      "the source has \(pixels) pixels, at most \(limit) are allowed"
    case .tooManyFrames(let frames, let limit):
      "the source has \(frames) frames, at most \(limit) are allowed"
    case .tooCostly(let reason): "the source takes too much work: \(reason)"
    case .internal: "something went wrong here; the request id leads to the log line"
    case .sourceUnreachable: "the origin cannot be reached"
    case .sourceError(let status, _): "the origin answered \(status)"
    case .sourceIncomplete: "the origin ended the transfer before the image was whole"
    case .sourceTLS: "no trusted TLS connection to the origin"
    case .tooManyRedirects(let limit): "the origin redirects more than \(limit) times"
    case .overloaded(let queue, let seconds):
      "too much is waiting (\(queue)); try again in \(seconds) s"
    case .outOfMemory:
      "there is too little memory for this image at the moment; try again in \(Self.memoryRetry) s"
    case .draining: "the server is stopping"
    case .revoked: "an operator ended all work that was under way; try again"
    case .sourceTimeout: "the origin took too long"
    case .deadlineExceeded: "the answer took longer than a request may take"
    case .notCached: "nothing fresh is kept, and only that was wanted"
    case .cancelled: "the client has gone"
    case .watermark(let cause): "the watermark cannot be used: \(cause.message)"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.message
    }
  }

  /// What the operator reads beside `message`, where there is more to say: a detail, the key that decides, or both.
  /// Secrets in it are masked.
  public var logDetail: String? { unmaskedDetail.map(SecretMask.masked) }

  private var unmaskedDetail: String? {
    switch self {
    case .forbiddenSource(_, let detail, _), .unsupportedFormat(let detail),
      .undecodable(let detail), .internal(let detail), .outOfMemory(let detail),
      .sourceUnreachable(let detail),
      .sourceIncomplete(let detail), .sourceTLS(let detail), .sourceTimeout(let detail):
      let text = detail.isEmpty && decidingKey != nil ? message : detail
      return text.isEmpty ? nil : text + hint
    case .watermark(let cause):
      return "of the watermark: \(cause.logDetail ?? cause.message)"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): return cause.logDetail
    default: return decidingKey.map { _ in message + hint }
    }
  }

  /// The parameter that was wrong, where one was.
  public var parameter: String? {
    switch self {
    case .invalidURL, .forbiddenSource: "url"
    case .invalidParameter(let name, _, _), .unknownParameter(let name),
      .missingParameter(let name), .forbiddenParameter(let name):
      name
    case .watermark: "watermark"
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.parameter
    default: nil
    }
  }

  /// Seconds for `Retry-After`, where the failure will pass by itself.
  public var retryAfter: Int? {
    switch self {
    case .overloaded(_, let seconds): seconds
    case .outOfMemory: Self.memoryRetry
    case .draining, .revoked: 1
    case .remembered(let cause, _, _, _), .ofVariant(let cause): cause.retryAfter
    default: nil
    }
  }

  /// Seconds until memory is asked for again: what takes much of it takes seconds.
  private static let memoryRetry = 5
}
