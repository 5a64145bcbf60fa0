// ThumborDialect: how thumbor and imagor differ, and what each answers to a failure.

import Core

/// One of two servers with the same form of addresses.
enum ThumborDialect: String, Sendable {
  case thumbor, imagor

  /// The parts before the filters, in their order. Each may be absent.
  var parts: [DoorOption<ThumborDraft>] {
    self == .thumbor ? ThumborParts.thumbor : ThumborParts.imagor
  }

  /// The filters.
  var filters: [DoorOption<ThumborDraft>] {
    self == .thumbor ? ThumborFilters.thumbor : ThumborFilters.imagor
  }

  /// The rows of the peer's page.
  var rows: [DoorOptionRow] { (parts + filters).map(\.row) + ThumborSources.rows(self) }
}

extension ThumborDialect {
  /// The answer of the health check.
  var health: DoorAnswer {
    DoorAnswer(
      status: 200, contentType: "text/html; charset=UTF-8",
      body: self == .thumbor ? "WORKING" : "", reason: "health check")
  }

  /// Refuses an address.
  func refusal(_ reason: String) -> DoorAnswer { answer(400, "invalid", reason: reason) }

  /// Refuses a signature, or the lack of one.
  func mismatch(_ reason: String) -> DoorAnswer {
    answer(self == .thumbor ? 400 : 403, "url signature mismatch", reason: reason)
  }

  /// Refuses a source.
  func forbidden(_ reason: String) -> DoorAnswer {
    answer(self == .thumbor ? 400 : 403, "http source not allowed", reason: reason)
  }

  /// Returns what the peer answers to a failure. What clients may wait for keeps Pictor's status.
  func answer(to error: ImageError) -> DoorAnswer {
    let (status, message) =
      self == .thumbor ? (thumborStatus(of: error), "") : imagorStatus(of: error)
    let retry = error.retryAfter.flatMap { HeaderField("Retry-After", value: "\($0)") }
    return answer(status, message, fields: retry.map { [$0] } ?? [], reason: error.message)
  }

  private func thumborStatus(of error: ImageError) -> Int {
    switch error.cause {
    case .sourceNotFound, .sourceError, .notFound: 404
    case .watermark: 400
    case .sourceUnreachable, .sourceTLS: 500
    default: error.status < 500 && error.status != 429 && error.status != 405 ? 400 : error.status
    }
  }

  private func imagorStatus(of error: ImageError) -> (Int, String) {
    switch error.cause {
    case .sourceNotFound, .notFound: (404, "not found")
    case .sourceError(let status, _, _) where (400...599).contains(status):
      (status, "the source's status is \(status)")
    case .invalidSignature, .unsignedParameter: (403, "url signature mismatch")
    case .forbiddenSource: (403, "http source not allowed")
    case .expiredSignature: (410, "expired")
    case .unsupportedFormat, .unsupportedKind, .undecodable: (406, "unsupported format")
    case .sourceTooLarge: (400, "maximum size exceeded")
    case .tooManyPixels, .tooManyFrames, .tooCostly: (422, "maximum resolution exceeded")
    case .rateLimited, .overloaded: (429, "too many requests")
    case .sourceTimeout, .deadlineExceeded, .imagingTimeout: (408, "timeout")
    case .methodNotAllowed: (405, "method not allowed")
    default: error.status < 500 ? (400, "invalid") : (error.status, "internal error")
    }
  }

  private func answer(
    _ status: Int, _ message: String, fields: [HeaderField] = [], reason: String
  ) -> DoorAnswer {
    DoorAnswer(
      status: status,
      contentType: self == .thumbor ? "text/html; charset=UTF-8" : "application/json",
      body: self == .thumbor ? "" : "{\"message\":\"\(message)\",\"status\":\(status)}",
      fields: fields, reason: reason)
  }
}
