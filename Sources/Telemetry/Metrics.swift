// Counter and LatencyHistogram: figures that any thread may change and any other read, without a lock.

import Synchronization

/// A number that only grows.
public final class Counter: Sendable {
  private let storage = Atomic<Int>(0)

  /// Starts at 0.
  public init() {}

  /// Adds `amount`, which is not negative.
  public func add(_ amount: Int = 1) {
    storage.wrappingAdd(amount, ordering: .relaxed)
  }

  /// What was counted so far.
  public var value: Int { storage.load(ordering: .relaxed) }
}

/// A number that rises and falls.
public final class Gauge: Sendable {
  private let storage: Atomic<Int>

  /// Starts at `value`.
  public init(_ value: Int = 0) { storage = Atomic(value) }

  /// Adds `amount`, which may be negative.
  public func add(_ amount: Int) {
    storage.wrappingAdd(amount, ordering: .relaxed)
  }

  /// What it is now.
  public var value: Int { storage.load(ordering: .relaxed) }
}

/// How long something took, over the whole life of the server: counts in buckets whose width grows with the value, so
/// that a quantile is off by at most an eighth (the idea of HdrHistogram with three bits of precision).
///
/// Values run from 1 µs to about 19 hours; longer ones count in the last bucket.
public final class LatencyHistogram: Sendable {
  private static let bucketCount = 280
  private let buckets: [Counter]
  private let microseconds = Counter()

  /// Empty.
  public init() {
    buckets = (0..<Self.bucketCount).map { _ in Counter() }
  }

  /// Counts one duration.
  public func record(_ duration: Duration) {
    let parts = duration.components
    record(
      microseconds: Int(parts.seconds) * 1_000_000 + Int(parts.attoseconds / 1_000_000_000_000))
  }

  /// Counts one duration in whole microseconds: for whom the 128-bit division of a `Duration` is too dear.
  public func record(microseconds value: Int) {
    let value = max(value, 0)
    microseconds.add(value)
    buckets[Self.bucket(of: value)].add()
  }

  /// The state now, as `/stats` shows it.
  public var figures: LatencyFigures { Self.figures(of: [self]) }

  /// The state of several taken together, where each thread counts in one of its own.
  public static func figures(of histograms: [LatencyHistogram]) -> LatencyFigures {
    let counts = (0..<bucketCount).map { index in
      histograms.reduce(0) { $0 + $1.buckets[index].value }
    }
    let sum = histograms.reduce(0) { $0 + $1.microseconds.value }
    let total = counts.reduce(0, +)
    func quantile(_ share: Double) -> Double {
      var rest = Int((Double(total) * share).rounded(.up))
      for (index, count) in counts.enumerated() where count > 0 {
        rest -= count
        if rest <= 0 { return Double(upperBound(ofBucket: index)) / 1_000 }
      }
      return 0
    }
    return LatencyFigures(
      count: total, sumSeconds: Double(sum) / 1e6, p50: quantile(0.5),
      p95: quantile(0.95), p99: quantile(0.99))
  }

  /// Eight buckets for every doubling: 0–7 one by one, then by the three bits behind the highest.
  private static func bucket(of value: Int) -> Int {
    guard value >= 8 else { return value }
    let exponent = Int.bitWidth - 1 - value.leadingZeroBitCount
    return min((exponent - 2) * 8 + (value >> (exponent - 3) & 7), bucketCount - 1)
  }

  private static func upperBound(ofBucket index: Int) -> Int {
    guard index >= 8 else { return index }
    let exponent = index / 8 + 2
    return (8 + index % 8 + 1) << (exponent - 3) - 1
  }
}
