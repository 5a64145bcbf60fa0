// S3RequestTests: names, times and bodies of requests, and what answers mean.

import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import Sharing

@Suite struct S3RequestTests {
  @Test(arguments: [
    ("v:0123abcd", "v/01/23abcd"), ("s:ff00", "s/ff/00"), ("v:ab", "v/ab"), ("plain", "plain"),
    ("a:b:c-d/e", "a/b/:c-d/e".replacing(":", with: "/")),
  ])
  func `names are spread by the first digits of their digest`(name: String, path: String) {
    #expect(S3Request.path(of: name) == path)
  }

  @Test(arguments: [
    (0, "1970-01-01T00:00:00Z"), (951_782_400, "2000-02-29T00:00:00Z"),
    (1_795_618_799, "2026-11-25T14:59:59Z"), (253_402_300_799, "9999-12-31T23:59:59Z"),
  ])
  func `times are written as RFC 3339 does`(seconds: Int, text: String) {
    #expect(S3Request.text(of: UnixTime(seconds: seconds)) == text)
  }

  @Test(arguments: [1, 3, 4, 5, 100])
  func `a body is given in any pieces`(piece: Int) {
    let body: [UInt8] = Array(0..<14)
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: piece)
    while case let count = buffer.withUnsafeMutableBytes({ body.copy(at: bytes.count, to: $0) }),
      count > 0
    { bytes += buffer[..<count] }
    #expect(bytes == body)
  }

  private func answer(
    _ status: Int, code: String? = nil, received: Int = 0, expected: Int? = nil,
    stop: S3Answer.Stop? = nil, failure: String? = nil
  ) -> S3Answer {
    S3Answer(
      failure: failure, stop: stop, status: status, code: code, received: received,
      expected: expected)
  }

  private func expect(
    _ answer: S3Answer, _ kind: S3Answer.Kind, _ meaning: S3Answer.Meaning,
    _ verdict: RequestBreaker.Verdict, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    let found = answer.meaning(for: kind)
    #expect(found.0 == meaning && found.1 == verdict, sourceLocation: sourceLocation)
  }

  @Test func `only a whole entry is found, and only a missing object is absent`() {
    expect(answer(200, received: 9, expected: 9), .read, .found, .alive)
    expect(answer(200, received: 8, expected: 9), .read, .failed, .failed)
    expect(answer(200), .read, .failed, .failed)
    expect(answer(200, received: 9), .read, .failed, .failed)
    expect(answer(404, code: "NoSuchKey"), .read, .absent, .alive)
    expect(answer(404), .read, .absent, .alive)
    expect(answer(404, code: "NoSuchBucket"), .read, .failed, .failed)
    for status in [0, 204, 206, 301, 304, 307, 400, 403, 429, 500, 503] {
      expect(answer(status, code: "SlowDown"), .read, .failed, .failed)
    }
  }

  @Test func `what concerns one entry does not open the breaker`() {
    expect(answer(200, stop: .tooLarge, failure: "23"), .read, .failed, .alive)
    expect(answer(200, stop: .noRoom, failure: "23"), .read, .failed, .alive)
    for status in [409, 412, 413, 507] { expect(answer(status), .write, .failed, .alive) }
    for status in [0, 202, 206, 307, 400, 403, 404, 500, 503] {
      expect(answer(status), .write, .failed, .failed)
    }
    for status in [200, 201, 204] { expect(answer(status), .write, .written, .alive) }
  }

  @Test func `a transfer that failed is a failure, whatever its status`() {
    expect(answer(200, received: 9, expected: 9, failure: "18"), .read, .failed, .failed)
    expect(answer(200, stop: .noLength, failure: "23"), .read, .failed, .failed)
    expect(answer(200, stop: .headTooLong, failure: "23"), .read, .failed, .failed)
    // A long error is cut, and its status counts.
    expect(answer(404, stop: .errorTooLong, failure: "23"), .read, .absent, .alive)
  }

  @Test func `the reason names the status and the code, and nothing else of the store`() {
    #expect(
      answer(403, code: "AccessDenied").meaning(for: .read).detail == "status 403, AccessDenied")
  }
}
