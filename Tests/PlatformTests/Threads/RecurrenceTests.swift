// RecurrenceTests: the moments of a recurrence.

import Platform
import Testing

@Suite struct RecurrenceTests {
  @Test func `it comes once a pause, however often it is asked for`() {
    // Given
    let start = ContinuousClock.now
    var check = Recurrence(every: .seconds(60), now: start)
    var moments: [Int] = []
    // When a signal wakes the thread every 7 s
    for second in stride(from: 0, to: 300, by: 7) {
      if check.isDue(now: start + .seconds(second)) { moments.append(second) }
    }
    // Then
    #expect(moments == [63, 126, 189, 252])
  }

  @Test func `the wait ends at the moment, and is never none`() {
    let start = ContinuousClock.now
    let check = Recurrence(every: .seconds(60), now: start)
    #expect(check.seconds(from: start) == 60)
    #expect(check.seconds(from: start + .milliseconds(100)) == 60)
    #expect(check.seconds(from: start + .seconds(59)) == 1)
    #expect(check.seconds(from: start + .milliseconds(59_990)) == 1)
    #expect(check.seconds(from: start + .seconds(200)) == 1)
  }
}
