// SeededGenerator: chance that tests can repeat.

/// Random numbers that are the same in every run (SplitMix64; Steele, Lea, Flood: Fast Splittable Pseudorandom Number
/// Generators, 2014).
public struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  /// The sequence of this number.
  public init(seed: UInt64) { state = seed }

  /// Its next number.
  public mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }
}
