// PrefetchListTests: tests the counts of PrefetchList and the rate of PrefetchRate.

import Core
import Testing

@testable import Managing

struct PrefetchListTests {
  private let start = ContinuousClock.now

  private func request(
    _ url: String, change: (inout LoadOptions) -> Void = { _ in }
  ) throws -> ImageRequest {
    var request = ImageRequest(source: try SourceURL(parsing: url), transform: Transform())
    change(&request.options)
    return request
  }

  private func lines(_ results: Result<ImageRequest, ImageError>...) -> [PrefetchLine] {
    results.enumerated().map { PrefetchLine(number: $0 + 1, request: $1) }
  }

  private func at(_ seconds: Double) -> ContinuousClock.Instant {
    start.advanced(by: .seconds(seconds))
  }

  @Test func `equal lines are loaded once, and the repetitions are skipped`() throws {
    var list = PrefetchList(
      id: "x",
      lines: lines(
        .success(try request("http://a/1")), .success(try request("http://A:80/1#x")),
        .success(try request("http://a/1") { $0.priority = .high }),
        .success(try request("http://a/1") { $0.isDetached = true }),
        .success(try request("http://a/1") { $0.cache = .refresh })), at: start)
    #expect(list.waiting == 2)
    #expect(list.status(at: start).skipped == 3)
    #expect(list.take { _ in false }?.number == 1)
    #expect(list.take { _ in false }?.number == 5)
    #expect(list.take { _ in false }?.number == nil, "each is given out once")
  }

  @Test func `every line runs at low priority and is not detached`() throws {
    var list = PrefetchList(
      id: "x",
      lines: lines(
        .success(
          try request("http://a/1") {
            $0.priority = .high
            $0.isDetached = true
          })), at: start)
    let line = list.take { _ in false }
    let options = try #require(line).request.options
    #expect(options.priority == .low && !options.isDetached)
  }

  @Test func `invalid lines count as failed from the start`() throws {
    var list = PrefetchList(
      id: "x",
      lines: lines(
        .failure(.unknownParameter("ww")), .success(try request("local:///a.jpg")),
        .failure(.missingParameter("url"))), at: start)
    #expect(list.waiting == 1)
    let status = list.status(at: start)
    #expect((status.failed, status.total) == (2, 3))
    #expect(status.reasons == ["unknown_parameter": 1, "missing_parameter": 1])
    #expect(status.failures.map(\.line) == [1, 3])
    #expect(status.failures.first?.message == "unknown parameter 'ww'")
    #expect(list.isRunning)
    list.settle(2, as: .finished, at: at(2))
    let ended = list.status(at: at(9))
    #expect(ended.state == .finished)
    #expect((ended.seconds, ended.secondsLeft, ended.rate) == (2, 0, 0.5))
  }

  @Test func `a list without valid lines ends when it begins`() {
    var list = PrefetchList(id: "x", lines: lines(.failure(.missingParameter("url"))), at: start)
    #expect(list.status(at: at(5)).state == .finished)
    #expect(list.status(at: at(5)).seconds == 0)
  }

  @Test func `all failures are counted, and the first hundred are listed`() throws {
    let bad = (1...150).map { PrefetchLine(number: $0, request: .failure(.unknownParameter("x"))) }
    var list = PrefetchList(id: "x", lines: bad, at: start)
    let status = list.status(at: start)
    #expect(status.failed == 150 && status.reasons == ["unknown_parameter": 150])
    #expect(status.failures.map(\.line) == Array(1...100))
  }

  @Test func `results after a cancellation are ignored`() throws {
    var list = PrefetchList(
      id: "x",
      lines: lines(.success(try request("http://a/1")), .success(try request("http://a/2"))),
      at: start)
    list.settle(1, as: .finished, at: at(1))
    list.cancel(at: at(2))
    list.settle(2, as: .finished, at: at(3))
    let status = list.status(at: at(4))
    #expect(status.state == .cancelled && status.done == 1 && status.seconds == 2)
  }

  @Test func `the rate covers the last ten seconds, and the time left follows from it`() throws {
    let requests = try (1...100).map {
      PrefetchLine(number: $0, request: .success(try request("http://a/\($0)")))
    }
    var list = PrefetchList(id: "x", lines: requests, at: start)
    #expect(list.status(at: start).secondsLeft == nil)
    for line in 1...50 { list.settle(line, as: .skipped, at: at(0.5)) }
    #expect(list.status(at: at(0.5)).rate == 50, "the first second counts as whole")
    #expect(list.status(at: at(5)).rate == 10)
    #expect(list.status(at: at(5)).secondsLeft == 5)
    for second in 11...20 { list.settle(40 + second, as: .finished, at: at(Double(second))) }
    let status = list.status(at: at(20.5))
    #expect(status.rate == 10 / 9.5)
    #expect(status.secondsLeft == 40 / (10 / 9.5))
    let stalled = list.status(at: at(60))
    #expect(stalled.rate == 0 && stalled.secondsLeft == nil)
  }
}
