// LatencyHistogram: a lock-free histogram of durations.

/// A summary of durations: count, sum, and quantiles in milliseconds.
public struct LatencyFigures: Hashable, Sendable {
  /// The number of durations.
  public let count: Int
  /// The sum of all durations, in seconds.
  public let sumSeconds: Double
  /// The median in milliseconds.
  public let p50: Double
  /// The 95th percentile in milliseconds.
  public let p95: Double
  /// The 99th percentile in milliseconds.
  public let p99: Double
  /// The number of durations below each of `bounds`, for `/metrics`.
  let buckets: [Int]
  /// The exemplars of the buckets, the last of them without a bound; empty without any.
  let exemplars: [Exemplar?]

  /// The upper bounds of `buckets` in seconds: 8 µs, 16 µs and so on to 33.6 s. Powers of two,
  /// where a histogram has its own bounds, so no count is an estimate.
  static let bounds = boundExponents.map { Double(1 << $0) / 1e6 }
  /// The bounds as powers of two of a microsecond.
  static let boundExponents = 3...25
}

/// The last traced duration of a bucket (OpenMetrics 1.0, “Exemplars”).
struct Exemplar: Hashable, Sendable {
  let traceID: String
  let microseconds: Int
  /// When it was recorded, in microseconds since 1970.
  let time: Int
}

/// A histogram of durations since the start of the server.
///
/// Bucket widths grow with the value, so a quantile is off by at most an eighth (like an
/// HdrHistogram with three bits of precision). Values range from 1 µs to about 19 hours; the last
/// bucket counts longer ones.
public final class LatencyHistogram: Sendable {
  private static let bucketCount = 280
  private let buckets = (0..<bucketCount).map { _ in Counter() }
  private let microseconds = Counter()
  private let exemplars = Lock<[Exemplar?]>([])
  /// The key in `/stats`, the name in `/metrics`, and what is measured; `nil` for a part of another
  /// histogram.
  let metric: (key: String, name: String, help: String)?

  /// Creates an empty histogram without a name.
  public init() {
    metric = nil
  }

  /// Creates an empty histogram, with its key in `/stats`, its name in `/metrics`, and what it
  /// measures.
  public init(_ key: String, _ name: String, _ help: String) {
    metric = (key, name, help)
  }

  /// Records a duration.
  public func record(_ duration: Duration) {
    record(microseconds: duration.wholeNanoseconds / 1_000)
  }

  /// Records a duration in whole microseconds. Avoids the 128-bit division of a `Duration` on hot
  /// paths.
  public func record(microseconds value: Int) {
    let value = max(value, 0)
    microseconds.add(value)
    buckets[Self.bucket(of: value)].add()
  }

  /// Names the trace of a duration that was recorded. Takes a lock: only for sampled requests.
  public func exemplify(microseconds value: Int, traceID: String) {
    let value = max(value, 0)
    let last = LatencyFigures.boundExponents.count
    let exponent = Int.bitWidth - value.leadingZeroBitCount
    let bucket = min(max(exponent - LatencyFigures.boundExponents.lowerBound, 0), last)
    let exemplar = Exemplar(traceID: traceID, microseconds: value, time: WallClock.microseconds)
    exemplars.withLock { exemplars in
      if exemplars.isEmpty { exemplars = Array(repeating: nil, count: last + 1) }
      exemplars[bucket] = exemplar
    }
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
    var exemplars: [Exemplar?] = []
    for histogram in histograms {
      let own = histogram.exemplars.withLock { $0 }
      if exemplars.isEmpty { exemplars = own }
      for (place, exemplar) in own.enumerated() {
        guard let exemplar, exemplar.time > exemplars[place]?.time ?? 0 else { continue }
        exemplars[place] = exemplar
      }
    }
    return LatencyFigures(
      count: total, sumSeconds: Double(sum) / 1e6, p50: quantile(0.5),
      p95: quantile(0.95), p99: quantile(0.99), buckets: cumulative, exemplars: exemplars)
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
