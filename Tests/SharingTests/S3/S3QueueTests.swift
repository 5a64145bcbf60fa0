// S3QueueTests: the bounds of the queue, without a thread, and names and times of requests.

import Core
import Testing

@testable import Sharing

@Suite struct S3QueueTests {
  private let start = ContinuousClock.now

  /// A queue as an object, since expectations cannot change values.
  private final class Subject {
    var queue: S3Queue
    init(_ queue: S3Queue) { self.queue = queue }

    func add(_ request: S3Request, now: ContinuousClock.Instant) -> Bool {
      queue.add(request, now: now)
    }
    func next(mayWrite: Bool) -> S3Request? { queue.next(mayWrite: mayWrite) }
    func takeExpired(now: ContinuousClock.Instant) -> [String] {
      queue.takeExpired(now: now).map(\.path)
    }
  }

  private func queue() throws -> Subject {
    var settings = SharedBucketSettings()
    settings.name = "shared"
    settings.entryLimit = 100
    var configuration = try S3Configuration(settings, credentials: nil)
    configuration.readLimit = 2
    configuration.retryInterval = .seconds(60)
    return Subject(S3Queue(configuration))
  }

  private func read(_ name: String = "a", deadline: Duration = .seconds(1)) -> S3Request {
    S3Request(work: .read, path: name, deadline: start + deadline) { _ in }
  }

  private func write(_ count: Int, deadline: Duration = .seconds(1)) -> S3Request {
    S3Request(
      work: .write([UInt8](repeating: 0, count: count), expires: UnixTime(seconds: 0)), path: "w",
      deadline: start + deadline
    ) { _ in }
  }

  @Test func `reads have a bound, and come first`() throws {
    let queue = try queue()
    #expect(queue.add(write(1), now: start) && queue.add(write(1), now: start))
    #expect(queue.add(read("a"), now: start) && queue.add(read("b"), now: start))
    #expect(!queue.add(read("c"), now: start))
    #expect(queue.queue.count == 4)
    #expect(queue.next(mayWrite: true)?.path == "a")
    #expect(queue.next(mayWrite: false)?.path == "b")
    #expect(queue.next(mayWrite: false) == nil)
    #expect(queue.next(mayWrite: true)?.path == "w")
  }

  @Test func `one whose time is over is taken, and the others stay`() throws {
    let queue = try queue()
    _ = queue.add(read("late", deadline: .seconds(1)), now: start)
    _ = queue.add(read("early", deadline: .seconds(5)), now: start)
    #expect(queue.queue.deadline == start + .seconds(1))
    #expect(queue.takeExpired(now: start).isEmpty)
    #expect(queue.takeExpired(now: start + .seconds(1)) == ["late"])
    #expect(queue.next(mayWrite: true)?.path == "early")
  }

  @Test func `all that wait are hopeless once the breaker opens`() throws {
    let queue = try queue()
    _ = queue.add(read("a"), now: start)
    _ = queue.add(read("b"), now: start)
    _ = queue.add(write(10), now: start)
    let first = try #require(queue.next(mayWrite: true))
    queue.queue.end(first, .failure, now: start)
    #expect(queue.takeExpired(now: start) == ["b", "w"])
    #expect(!queue.add(read(), now: start) && !queue.queue.isReady(now: start))
  }

  @Test func `the probe waits for its turn, and is the only one`() throws {
    let queue = try queue()
    _ = queue.add(read("a"), now: start)
    queue.queue.end(try #require(queue.next(mayWrite: true)), .failure, now: start)
    let later = start + .seconds(100)
    #expect(queue.add(read("probe", deadline: .seconds(101)), now: later))
    #expect(!queue.add(read("another", deadline: .seconds(101)), now: later))
    #expect(queue.takeExpired(now: later).isEmpty)
    let probe = try #require(queue.next(mayWrite: true))
    queue.queue.end(probe, .success, now: later)
    #expect(queue.add(read("another", deadline: .seconds(101)), now: later))
  }

  @Test func `after the end nothing is admitted, and all that wait are hopeless`() throws {
    let queue = try queue()
    _ = queue.add(read("a"), now: start)
    queue.queue.stop()
    #expect(!queue.add(read("b"), now: start) && !queue.queue.isReady(now: start))
    #expect(queue.takeExpired(now: start) == ["a"])
  }

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
}
