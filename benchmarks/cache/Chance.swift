// Chance: random numbers that are the same in every run, so that a table can be made again.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
struct Chance: RandomNumberGenerator {
  private var state: UInt64

  init(seed: UInt64) { state = seed }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ value >> 30) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ value >> 27) &* 0x94d0_49bb_1331_11eb
    return value ^ value >> 31
  }

  /// At least 0 and below 1, with the 53 bits that a Double has.
  mutating func unit() -> Double { Double(next() >> 11) / 0x1p53 }
}

/// Ranks from 0 on, the first most often: rank r with a weight of 1 ÷ (r + 1)^alpha.
struct Zipf {
  private var sums: [Double] = []

  init(_ count: Int, alpha: Double) {
    sums.reserveCapacity(count)
    var sum = 0.0
    for rank in 1...count {
      sum += 1 / power(Double(rank), alpha)
      sums.append(sum)
    }
  }

  func next(_ chance: inout Chance) -> Int {
    let wanted = chance.unit() * (sums.last ?? 0)
    var low = 0
    var high = sums.count - 1
    while low < high {
      let middle = (low + high) / 2
      if sums[middle] > wanted { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
