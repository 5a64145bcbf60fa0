// TraceSampler: picks the requests that are recorded.

/// Picks a share of requests at random. Belongs to one event loop, because the system's random
/// numbers cost a system call each.
///
/// Not by the trace id: a client chooses that, and so could choose to be recorded.
struct TraceSampler {
  private var state = UInt64.random(in: 0...(.max))

  /// Returns what `picks` compares with, for a share of 0–1.
  static func threshold(of share: Double) -> UInt64 {
    guard share < 1 else { return .max }
    return UInt64(max(share, 0) * 18_446_744_073_709_551_616)
  }

  /// Returns whether the next request is recorded.
  mutating func picks(below threshold: UInt64) -> Bool {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return threshold == .max || (value ^ (value >> 31)) < threshold
  }
}
