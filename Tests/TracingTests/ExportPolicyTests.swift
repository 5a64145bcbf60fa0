// ExportPolicyTests: what follows each answer of a collector.

import Testing

@testable import Tracing

struct ExportPolicyTests {
  private let policy = ExportPolicy()

  private func step(
    _ status: Int, retryAfter: Int? = nil, attempt: Int = 1, chance: Double = 1
  ) -> ExportPolicy.Step {
    policy.step(
      after: .answered(status: status, retryAfter: retryAfter, rejected: 0), attempt: attempt,
      chance: chance)
  }

  @Test(arguments: [429, 502, 503, 504])
  func `an overloaded collector is asked again, a few times`(status: Int) {
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

  @Test(arguments: [301, 400, 401, 404, 413, 500, 501])
  func `a batch that is refused is not sent again`(status: Int) {
    #expect(step(status) == .refused)
  }

  @Test func `no answer is a reason to try again, an accepted batch is not`() {
    #expect(policy.step(after: .failed("x"), attempt: 1, chance: 1) == .retry(after: .seconds(1)))
    #expect(policy.step(after: .failed("x"), attempt: 5, chance: 1) == .lost)
    #expect(step(200) == .done(rejected: 0) && step(202) == .done(rejected: 0))
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
