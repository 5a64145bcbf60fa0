// PrefetchRate: computes the current rate of a list.

import Telemetry

/// A rate over a sliding window of ten seconds, which predicts the remaining time better than the
/// overall rate. Pure: the caller passes the time since the start.
struct PrefetchRate {
  private static let window = 10
  /// Counts by second, at the second's number modulo `window`.
  private var counts = [Int](repeating: 0, count: window)
  private var second = 0

  /// Counts one completed line.
  mutating func add(at elapsed: Duration) {
    advance(to: elapsed)
    counts[second % Self.window] += 1
  }

  /// Returns lines per second. During the first second, the count itself.
  mutating func value(at elapsed: Duration) -> Double {
    advance(to: elapsed)
    let start = Double(max(second - Self.window + 1, 0))
    return Double(counts.reduce(0, +)) / max(elapsed.inSeconds - start, 1)
  }

  private mutating func advance(to elapsed: Duration) {
    let now = max(Int(elapsed.components.seconds), second)
    for passed in (second..<now).suffix(Self.window) { counts[(passed + 1) % Self.window] = 0 }
    second = now
  }
}
