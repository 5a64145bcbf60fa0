// OriginBackoffTests: tests OriginBackoff, Revalidations and ClockWatch, with their bounds.

import Core
import TestSupport
import Testing

@testable import Managing

struct OriginBackoffTests {
  private func key(_ number: Int) throws -> CacheKey {
    CacheKey(source: try SourceURL(parsing: "http://origin/\(number)"), transform: Transform())
  }

  private func time(_ seconds: Int) -> UnixTime { UnixTime(seconds: seconds) }

  @Test(arguments: [(nil, 10), (3, 10), (40, 40), (9_999_999, 3_600)] as [(Int?, Int)])
  func `the back-off is the interval or the origin's Retry-After, up to an hour`(
    retryAfter: Int?, seconds: Int
  ) throws {
    var failing = OriginBackoff()
    let key = try key(1).source
    #expect(!failing.isLeftAlone(key, now: time(0)))
    failing.add(key, after: .sourceError(status: 503, retryAfter: retryAfter), now: time(0))
    #expect(failing.isLeftAlone(key, now: time(seconds - 1)))
    #expect(!failing.isLeftAlone(key, now: time(seconds)))
    #expect(failing.isFailing(key, now: time(seconds + 59)))
    #expect(!failing.isFailing(key, now: time(seconds + 60)))
    failing.remove(key)
    #expect(!failing.isFailing(key, now: time(0)))
  }

  @Test func `an error about the image is no reason to serve a stale response`() throws {
    var failing = OriginBackoff()
    let key = try key(1).source
    failing.add(key, after: .sourceError(status: 403), now: time(0))
    #expect(failing.isLeftAlone(key, now: time(0)) && !failing.isFailing(key, now: time(0)))
    failing.add(key, after: .sourceError(status: 500), now: time(1))
    #expect(failing.isFailing(key, now: time(1)))
  }

  @Test func `beyond the limit the first source is forgotten`() throws {
    var failing = OriginBackoff(limit: 3)
    func left() throws -> [Int] {
      try (1...9).filter { failing.isLeftAlone(try key($0).source, now: time(0)) }
    }
    for number in [1, 2, 3, 1, 4] {
      failing.add(try key(number).source, after: .sourceError(status: 500), now: time(0))
    }
    #expect(try left() == [2, 3, 4])
    // A removed source that fails again counts as new.
    failing.remove(try key(2).source)
    for number in [2, 5, 6] {
      failing.add(try key(number).source, after: .sourceError(status: 500), now: time(0))
    }
    #expect(try left().count <= 3)
    #expect(try left().contains(6))
    #expect(failing.count(now: time(0)) <= 3)
  }

  @Test func `each variant has one revalidation at a time, and their number is limited`() throws {
    var running = Revalidations()
    let keys = try (0...Revalidations.limit).map { try key($0) }
    for key in keys.dropLast() {
      let isFirst = running.begin(key)
      let isSecond = running.begin(key)
      #expect(isFirst && !isSecond)
    }
    let last = try #require(keys.last)
    var hasBegun = running.begin(last)
    #expect(!hasBegun && !running.includes(last.source))
    running.end(keys[0])
    #expect(!running.includes(keys[0].source) && running.includes(keys[1].source))
    hasBegun = running.begin(last)
    #expect(hasBegun && running.includes(last.source))
    // Revalidations leave the queue of jobs to clients.
    #expect(Revalidations.limit <= ImagingSettings().queueLimit / 4)
  }

  @Test func `a clock set back is reported once until it catches up`() {
    var watch = ClockWatch()
    func sees(_ received: Int, at now: Int) -> Bool {
      watch.sees(UnixTime(seconds: received), now: UnixTime(seconds: now))
    }
    let told = [
      sees(1_000, at: 500), sees(1_200, at: 600), sees(900, at: 700), sees(1_100, at: 1_000),
      sees(1_900, at: 1_200),
      sees(1_500, at: 1_300),
    ]
    #expect(told == [true, false, false, false, true, false])
  }

  @Test func `a source is being revalidated as long as one of its variants is`() throws {
    var running = Revalidations()
    var transform = Transform()
    transform.scale = 0.5
    let plain = try key(1)
    let half = CacheKey(source: try SourceURL(parsing: "http://origin/1"), transform: transform)
    _ = (running.begin(plain), running.begin(half))
    running.end(plain)
    #expect(running.includes(plain.source))
    running.end(half)
    running.end(half)
    #expect(!running.includes(plain.source))
  }
}
