// QueuePaceTests: estimates of a queue's time.

import Testing

@testable import Core

struct QueuePaceTests {
  @Test func `without work the estimate is a second`() {
    #expect(QueuePace().seconds(forWaiting: 1_000, width: 1) == 1)
  }

  @Test func `the estimate grows with the queue and falls with its width, within bounds`() {
    var pace = QueuePace()
    for _ in 0..<3 { pace.record(.milliseconds(500)) }
    #expect(pace.seconds(forWaiting: 0, width: 2) == 1)
    #expect(pace.seconds(forWaiting: 10, width: 1) == 5)
    #expect(pace.seconds(forWaiting: 10, width: 2) == 3)
    #expect(pace.seconds(forWaiting: 10, width: 0) == 5)
    #expect(pace.seconds(forWaiting: 1_000_000, width: 1) == QueuePace.longest)
  }

  @Test func `the estimate follows work that gets slower or faster`() {
    var pace = QueuePace()
    for _ in 0..<50 { pace.record(.milliseconds(10)) }
    #expect(pace.seconds(forWaiting: 100, width: 1) == 1)
    for _ in 0..<50 { pace.record(.seconds(1)) }
    #expect(pace.seconds(forWaiting: 30, width: 1) == 30)
    for _ in 0..<80 { pace.record(.milliseconds(10)) }
    #expect(pace.seconds(forWaiting: 100, width: 1) <= 2)
  }
}
