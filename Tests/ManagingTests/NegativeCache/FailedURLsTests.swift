// FailedURLsTests: tests which failures are cached, for how long, and how they are removed.

import Core
import TestSupport
import Testing

@testable import Managing

struct FailedURLsTests {
  private let key = CacheKey(text: "http://a/1.jpg")

  private func time(_ seconds: Int) -> UnixTime { UnixTime(seconds: seconds) }

  @Test(arguments: [
    (ImageError.sourceNotFound(status: 404), 600, 600),
    (.sourceNotFound(status: 410), 86_400, 86_400),
    (.sourceTooLarge(limit: 1), 3_600, 60), (.unsupportedFormat(detail: "?"), 3_600, 60),
    (.unsupportedKind(reason: "?"), 3_600, 60),
    (.undecodable(detail: "?"), 3_600, 60), (.tooManyPixels(pixels: 2, limit: 1), 3_600, 60),
    (.tooManyFrames(frames: 2, limit: 1), 3_600, 60), (.tooCostly(reason: "?"), 3_600, 60),
    (.ofVariant(.undecodable(detail: "?")), 3_600, 3_600),
  ])
  func `a permanent failure is remembered by status, and told for a minute if it may heal`(
    error: ImageError, seconds: Int, told forClients: Int
  ) {
    var failed = FailedURLs()
    let told = failed.add(key, after: error, now: time(0))
    #expect(told == .remembered(error, seconds: forClients, isRepeated: false))
    #expect(failed.add(key, after: told, now: time(0)) == told)
    #expect(
      failed.failure(of: key, now: time(seconds - 1))
        == .remembered(error, seconds: 1, isRepeated: true))
    #expect(failed.failure(of: key, now: time(seconds)) == nil)
  }

  @Test(arguments: [
    ImageError.sourceUnreachable(detail: "refused"), .sourceTimeout(detail: "connect"),
    .sourceIncomplete(detail: "reset"), .sourceError(status: 429), .sourceError(status: 503),
    .sourceTLS(detail: "?"), .cancelled, .revoked, .overloaded(queue: "q", retryAfter: 1),
    .deadlineExceeded, .internal(detail: "?"), .outOfMemory(detail: "?"),
    .ofVariant(.internal(detail: "?")), .forbiddenSource(reason: "r", detail: "d"),
  ])
  func `a transient failure is never remembered, regardless of the policy`(error: ImageError) {
    var settings = FailureSettings()
    for status in 400..<600 { settings.lifetimes[status] = .seconds(60) }
    var failed = FailedURLs(settings: settings)
    #expect(failed.add(key, after: error, now: time(0)) == error)
    #expect(failed.count == 0)
  }

  @Test func `the first failure of a URL is the one reported`() {
    var failed = FailedURLs()
    _ = failed.add(key, after: .sourceNotFound(status: 404), now: time(0))
    _ = failed.add(key, after: .undecodable(detail: "later"), now: time(10))
    #expect(
      failed.failure(of: key, now: time(10))
        == .remembered(.sourceNotFound(status: 404), seconds: 590, isRepeated: true))
  }

  @Test func `a full list drops its oldest entries`() {
    var settings = FailureSettings()
    settings.limit = 3
    var failed = FailedURLs(settings: settings)
    let keys = (0..<1_000).map { CacheKey(text: "http://a/\($0)") }
    for key in keys { _ = failed.add(key, after: .sourceNotFound(status: 404), now: time(0)) }
    #expect(failed.count == 3)
    #expect(
      failed.all(now: time(0)).map(\.url) == ["http://a/997", "http://a/998", "http://a/999"])
  }

  @Test func `a limit or lifetime of 0 remembers nothing`() {
    var settings = FailureSettings()
    settings.limit = 0
    var none = FailedURLs(settings: settings)
    _ = none.add(key, after: .sourceNotFound(status: 404), now: time(0))
    #expect(none.count == 0)
    settings = FailureSettings()
    settings.lifetimes[404] = nil
    var some = FailedURLs(settings: settings)
    #expect(
      some.add(key, after: .sourceNotFound(status: 404), now: time(0))
        == .sourceNotFound(status: 404))
  }

  @Test func `removing a source removes the failures of its variants`() throws {
    let source = try SourceURL(parsing: "http://a/1.jpg")
    var transform = Transform()
    transform.frame = 7
    var failed = FailedURLs()
    let variant = CacheKey(source: source, transform: transform)
    _ = failed.add(variant, after: .undecodable(detail: "?"), now: time(0))
    _ = failed.add(CacheKey(text: "http://a/2.jpg"), after: .undecodable(detail: "?"), now: time(0))
    #expect(failed.all(now: time(0)).first?.transform?.isEmpty == false)
    #expect(failed.removeAll { $0.url == source.text } == 1)
    #expect(failed.failure(of: variant, now: time(0)) == nil)
    #expect(failed.removeAll() == 1)
    #expect(failed.count == 0)
  }
}
