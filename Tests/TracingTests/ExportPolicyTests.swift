// ExportPolicyTests: what follows each answer of a collector.

import Testing

@testable import Tracing

struct ExportPolicyTests {
  private let policy = ExportPolicy()

  private func step(
    _ status: Int?, retryAfter: Int? = nil, attempt: Int = 1, chance: Double = 1
  ) -> ExportPolicy.Step {
    let reply = status.map {
      CollectorReply.answered(status: $0, retryAfter: retryAfter, rejected: 0)
    }
    return policy.step(after: reply ?? .failed("x"), attempt: attempt, chance: chance)
  }

  @Test(arguments: [nil, 429, 502, 503, 504])
  func `a collector that is away or overloaded is asked again, a few times`(status: Int?) {
    #expect(step(status) == .retry(after: .seconds(1)))
    #expect(step(status, chance: 0) == .retry(after: .milliseconds(500)))
    #expect(step(status, attempt: 4) == .retry(after: .seconds(8)))
    #expect(step(status, attempt: 5) == .lost)
  }

  @Test func `Retry-After is obeyed within its limit`() {
    #expect(step(503, retryAfter: 7, chance: 0) == .retry(after: .seconds(7)))
    #expect(step(429, retryAfter: 86_400) == .retry(after: .seconds(300)))
    #expect(step(503, retryAfter: 7, attempt: 5) == .lost)
  }

  @Test func `a batch that is refused or accepted is not sent again`() {
    for status in [301, 400, 401, 404, 413, 500, 501] { #expect(step(status) == .refused) }
    for status in [200, 202] { #expect(step(status) == .done(rejected: 0)) }
  }

  @Test func `a back-off has an upper limit`() {
    var policy = ExportPolicy()
    policy.attempts = 1_000
    let last = policy.step(after: .failed("x"), attempt: 999, chance: 1)
    #expect(last == .retry(after: .seconds(30)))
  }

  @Test(arguments: [
    ("{}", 0), ("", 0), ("no json", 0), ("{\"partialSuccess\":{}}", 0),
    ("{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"x\"}}", 3),
    ("{\"partialSuccess\":{\"rejectedSpans\":2}}", 2),
    ("{\"partialSuccess\":{\"rejectedSpans\":\"-2\"}}", 0),
    ("{\"partialSuccess\":{\"rejectedSpans\":\"many\"}}", 0),
  ])
  func `a partial success says how many spans were refused`(json: String, rejected: Int) {
    #expect(PartialSuccess.rejected(Array(json.utf8)) == rejected)
  }
}
