// ImageErrorTests: tests codes, statuses, and that public messages contain no secrets.

import Testing

@testable import Core

struct ImageErrorTests {
  @Test(arguments: [
    (ImageError.invalidURL("x", reason: "r"), 400, "invalid_url"),
    (.invalidParameter(name: "w", value: "0", allowed: "1 or more"), 400, "invalid_parameter"),
    (.unknownParameter("x"), 400, "unknown_parameter"),
    (.missingParameter("url"), 400, "missing_parameter"),
    (.unauthorized, 401, "unauthorized"),
    (.forbiddenParameter("retry"), 403, "forbidden_parameter"),
    (.forbiddenSource(reason: "r", detail: "10.0.0.1"), 403, "forbidden_source"),
    (.notFound(path: "/x"), 404, "not_found"),
    (.sourceNotFound(status: 410), 404, "source_not_found"),
    (.superseded, 409, "superseded"),
    (.sourceTooLarge(limit: 1), 413, "source_too_large"),
    (.unsupportedFormat(detail: "d"), 415, "unsupported_format"),
    (.unsupportedKind(reason: "r"), 415, "unsupported_format"),
    (.undecodable(detail: "d"), 422, "undecodable"),
    (.tooManyPixels(pixels: 2, limit: 1), 422, "too_many_pixels"),
    (.tooManyFrames(frames: 2, limit: 1), 422, "too_many_frames"),
    (.tooCostly(reason: "r"), 422, "too_costly"),
    (.ofVariant(.undecodable(detail: "d")), 422, "undecodable"),
    (.outOfMemory(detail: "d"), 503, "overloaded"),
    (.sourceUnreachable(detail: "d"), 502, "source_unreachable"),
    (.sourceError(status: 500), 502, "source_error"),
    (.sourceIncomplete(detail: "d"), 502, "source_incomplete"),
    (.sourceTLS(detail: "d"), 502, "source_tls"),
    (.tooManyRedirects(limit: 5), 502, "too_many_redirects"),
    (.overloaded(queue: "q", retryAfter: 1), 503, "overloaded"),
    (.draining, 503, "draining"),
    (.revoked, 503, "overloaded"),
    (.notCached, 504, "not_cached"),
    (
      .remembered(.sourceNotFound(status: 404), seconds: 9, isRepeated: true), 404,
      "source_not_found"
    ),
    (.watermark(.sourceNotFound(status: 404)), 502, "source_error"),
    (.watermark(.forbiddenSource(reason: "r", detail: "d")), 502, "source_error"),
    (.watermark(.sourceTooLarge(limit: 1)), 502, "source_error"),
    (.watermark(.sourceUnreachable(detail: "d")), 502, "source_unreachable"),
    (.watermark(.undecodable(detail: "d")), 422, "undecodable"),
    (.sourceTimeout(detail: "d"), 504, "source_timeout"),
    (.deadlineExceeded, 504, "deadline_exceeded"), (.imagingTimeout, 504, "deadline_exceeded"),
  ])
  func `each error has the status and code of the contract`(
    error: ImageError, status: Int, code: String
  ) {
    #expect(error.status == status)
    #expect(error.code == code)
    #expect(!error.message.isEmpty)
  }

  @Test func `details are logged and not returned`() {
    let secret = "10.1.2.3"
    let errors: [ImageError] = [
      .forbiddenSource(reason: "its address", detail: secret), .undecodable(detail: secret),
      .unsupportedFormat(detail: secret), .internal(detail: secret),
      .sourceUnreachable(detail: secret), .sourceIncomplete(detail: secret),
      .sourceTLS(detail: secret), .sourceTimeout(detail: secret), .outOfMemory(detail: secret),
      .ofVariant(.undecodable(detail: secret)),
    ]
    for error in errors {
      #expect(!error.message.contains(secret))
      #expect(error.logDetail?.hasPrefix(secret) == true)
    }
  }

  @Test(arguments: [
    (
      ImageError.forbiddenSource(reason: "r", detail: "d", key: "download.deny_hosts"),
      "download.deny_hosts"
    ),
    (.forbiddenParameter("retry"), "server.allow"),
    (.unsignedParameter("blur", key: "signing.mode"), "signing.mode"),
    (.invalidSignature(reason: "r"), "signing.keys"), (.expiredSignature(1), ""),
    (.forbiddenParameter("w"), "server.presets_only"), (.forbiddenParameter("url"), ""),
    (.sourceTooLarge(limit: 1), "download.maximum_bytes"),
    (.sourceTooLarge(limit: 1, key: "memory.budget"), "memory.budget"),
    (.tooManyPixels(pixels: 2, limit: 1), "imaging.maximum_pixels"),
    (.tooManyFrames(frames: 2, limit: 1), "imaging.maximum_frames"),
    (.tooManyRedirects(limit: 1), ""),
    (.outOfMemory(detail: "d"), "imaging.worker_memory"),
    (.tooCostly(reason: "r"), ""), (.bodyTooLarge(limit: 1), ""),
    (.bodyTooLarge(limit: 1, key: "download.maximum_bytes"), "download.maximum_bytes"),
    (.tooCostly(reason: "r", key: "imaging.processor_time"), "imaging.processor_time"),
    (.deadlineExceeded, "server.request_timeout"), (.imagingTimeout, "imaging.deadline"),
    (.sourceTimeout(detail: "d"), ""),
    (.sourceTimeout(detail: "d", key: "download.timeout"), "download.timeout"),
    (.overloaded(queue: "requests", retryAfter: 1), "server.active_requests"),
    (.overloaded(queue: "imaging", retryAfter: 1), "imaging.queue_limit"),
    (.overloaded(queue: "download", retryAfter: 1), "download.queue_limit"),
    (.overloaded(queue: "download time", retryAfter: 1), "download.timeout"),
    (.overloaded(queue: "download memory", retryAfter: 1), "memory.budget"),
    (.overloaded(queue: "stalled downloads", retryAfter: 1), "download.limit"),
    (.overloaded(queue: "memory", retryAfter: 1), "memory.budget"),
    (.overloaded(queue: "another", retryAfter: 1), ""),
    (.ofVariant(.imagingTimeout), "imaging.deadline"),
    (.rateLimited(by: .activeRequests, retryAfter: 1), "server.active_requests_per_client"),
    (.rateLimited(by: .imagingTime, retryAfter: 9), "server.imaging_time_per_client"),
    (.rateLimited(by: .requests, retryAfter: 2), "server.requests_per_second"),
    (.rateLimited(by: .connections, retryAfter: 1), "server.connections_per_client"),
    (.watermark(.sourceTooLarge(limit: 1)), "download.maximum_bytes"),
    (.sourceNotFound(status: 404), ""), (.unknownParameter("x"), ""),
  ])
  func `the deciding key is named in the log and in the explained message`(
    error: ImageError, key: String
  ) {
    #expect(error.decidingKey ?? "" == key)
    #expect(error.explainedMessage.hasPrefix(error.message))
    if !key.isEmpty {
      #expect(!error.message.contains(key))
      #expect(error.explainedMessage.contains(key))
      #expect(error.logDetail?.contains(key) == true)
    } else {
      #expect(!error.explainedMessage.contains("in the configuration"))
    }
  }

  @Test(
    arguments: [
      (.sourceUnreachable(detail: "no such host"), ": no such host"),
      (.sourceTLS(detail: "certificate has expired"), ": certificate has expired"),
      (
        .remembered(.unsupportedFormat(detail: "an HTML page"), seconds: 1, isRepeated: true),
        ": an HTML page"
      ),
      (.watermark(.sourceIncomplete(detail: "9 of 10 bytes")), ": 9 of 10 bytes"),
      // The detail has the address behind a name.
      (
        .sourceUnreachable(
          detail: "its address is not allowed: 10.0.0.1", key: "download.allow_networks"),
        " (see download.allow_networks in the configuration)"
      ),
    ] as [(ImageError, String)])
  func `the explained message ends in the cause, which the message keeps back`(
    error: ImageError, end: String
  ) {
    #expect(error.explainedMessage == error.message + end)
  }

  @Test func `a watermark error names the watermark, unless the failure is the server's own`() {
    let error = ImageError.remembered(.sourceNotFound(status: 404), seconds: 9, isRepeated: true)
    #expect(error.ofWatermark == .watermark(.sourceNotFound(status: 404)))
    #expect(error.ofWatermark.parameter == "watermark")
    #expect(error.ofWatermark.message.contains("watermark"))
    #expect(ImageError.undecodable(detail: "x").ofWatermark.logDetail == "watermark: x")
    for error: ImageError in [
      .cancelled, .draining, .overloaded(queue: "q", retryAfter: 1), .outOfMemory(detail: "d"),
      .imagingTimeout,
    ] {
      #expect(error.ofWatermark == error)
    }
  }

  @Test func `overload and draining errors state when to retry`() {
    #expect(ImageError.overloaded(queue: "q", retryAfter: 7).retryAfter == 7)
    #expect(ImageError.draining.retryAfter == 1)
    #expect(ImageError.deadlineExceeded.retryAfter == nil)
  }
}
