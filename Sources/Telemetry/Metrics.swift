// Metrics: lock-free counters, gauges and latency histograms.

import Synchronization

/// A monotonic counter.
public final class Counter: Sendable {
  private let storage = Atomic<Int>(0)

  /// Creates a counter at 0.
  public init() {}

  /// Adds `amount`, which must not be negative.
  public func add(_ amount: Int = 1) {
    storage.wrappingAdd(amount, ordering: .relaxed)
  }

  /// The count so far.
  public var value: Int { storage.load(ordering: .relaxed) }
}

/// A value that can rise and fall.
public final class Gauge: Sendable {
  private let storage: Atomic<Int>

  /// Creates a gauge at `value`.
  public init(_ value: Int = 0) { storage = Atomic(value) }

  /// Adds `amount`, which may be negative.
  public func add(_ amount: Int) {
    storage.wrappingAdd(amount, ordering: .relaxed)
  }

  /// The current value.
  public var value: Int { storage.load(ordering: .relaxed) }
}

/// A histogram of durations since the start of the server.
///
/// Bucket widths grow with the value, so a quantile is off by at most an eighth (like an
/// HdrHistogram with three bits of precision). Values range from 1 µs to about 19 hours; the last
/// bucket counts longer ones.
public final class LatencyHistogram: Sendable {
  private static let bucketCount = 280
  private let buckets: [Counter]
  private let microseconds = Counter()

  /// Creates an empty histogram.
  public init() {
    buckets = (0..<Self.bucketCount).map { _ in Counter() }
  }

  /// Records a duration.
  public func record(_ duration: Duration) {
    let parts = duration.components
    record(
      microseconds: Int(parts.seconds) * 1_000_000 + Int(parts.attoseconds / 1_000_000_000_000))
  }

  /// Records a duration in whole microseconds. Avoids the 128-bit division of a `Duration` on hot
  /// paths.
  public func record(microseconds value: Int) {
    let value = max(value, 0)
    microseconds.add(value)
    buckets[Self.bucket(of: value)].add()
  }

  /// The summary for `/stats`.
  public var figures: LatencyFigures { Self.figures(of: [self]) }

  /// Returns the combined summary of several histograms, for example of one per thread.
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
    var below = 0
    var next = 0
    let cumulative = LatencyFigures.boundExponents.map { exponent in
      while next < bucket(of: 1 << exponent) {
        below += counts[next]
        next += 1
      }
      return below
    }
    return LatencyFigures(
      count: total, sumSeconds: Double(sum) / 1e6, p50: quantile(0.5),
      p95: quantile(0.95), p99: quantile(0.99), buckets: cumulative)
  }

  /// Returns the bucket of a value: 0–7 have a bucket each, then each power of two has eight
  /// buckets.
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
