// PrefetchRate: how fast something goes at the moment.

import Telemetry

/// Things done a second over the last ten: what was fast at first says little of when the rest will be done. Pure: it is
/// told what time it is, in seconds since the beginning.
struct PrefetchRate {
  private static let window = 10
  /// By second, the current one and those before it, at the second's number modulo `window`.
  private var counts = [Int](repeating: 0, count: window)
  private var second = 0

  /// One is done.
  mutating func add(at elapsed: Duration) {
    advance(to: elapsed)
    counts[second % Self.window] += 1
  }

  /// Things done a second. Of the first second, as if all of it had passed.
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
