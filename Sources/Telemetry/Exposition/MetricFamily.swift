// MetricFamily: a family of Prometheus metrics, computed from the figures of `/stats`.

/// A family of metrics: its name, type, help, and its samples by their labels.
///
/// The lists of families are in the extensions. A new figure is one row there and one in docs/metrics.md.
public struct MetricFamily: Sendable {
  /// The type of a family.
  public enum Kind: String, Sendable {
    case counter, gauge, histogram
  }

  /// A pair of a label's name and value.
  public typealias Label = (name: String, value: String)

  /// The value of a sample.
  public enum Value: Sendable {
    /// The value of a counter or gauge.
    case number(Double)
    /// A histogram with its buckets.
    case histogram(LatencyFigures)
  }

  /// The family's samples: labels and a value each.
  public typealias Samples = [(labels: [Label], value: Value)]

  /// The name: `pictor_`, the thing, its unit; counters end in `_total`.
  public let name: String
  /// The type.
  public let kind: Kind
  /// One sentence for people.
  public let help: String
  /// Returns the samples.
  public let samples: @Sendable (Stats) -> Samples

  /// Creates a family.
  public init(
    _ kind: Kind, _ name: String, _ help: String, samples: @escaping @Sendable (Stats) -> Samples
  ) {
    self.kind = kind
    self.name = name
    self.help = help
    self.samples = samples
  }

  /// All families, in the order of `/metrics`.
  public static let all: [MetricFamily] =
    requests + caches + downloads + work + imaging + process + fleet
}

// MARK: Rows

extension MetricFamily {
  /// A counter without labels.
  static func counter(
    _ name: String, _ help: String, value: @escaping @Sendable (Stats) -> Int
  ) -> MetricFamily {
    MetricFamily(.counter, name, help) { [([], .number(Double(value($0))))] }
  }

  /// A counter with one label. The value's closure returns the count of each label's value.
  static func counters(
    _ name: String, by label: String, _ help: String,
    values: @escaping @Sendable (Stats) -> [String: Int]
  ) -> MetricFamily {
    MetricFamily(.counter, name, help) { labelled(values($0), by: label) }
  }

  /// A counter with two labels.
  static func counters(
    _ name: String, byOuter outer: String, inner: String, _ help: String,
    values: @escaping @Sendable (Stats) -> [String: [String: Int]]
  ) -> MetricFamily {
    MetricFamily(.counter, name, help) { stats in
      values(stats).sorted { $0.key < $1.key }.flatMap { first, counts in
        labelled(counts, by: inner).map { ([(outer, first)] + $0.labels, $0.value) }
      }
    }
  }

  /// A gauge without labels; `nil`: it has no value now.
  static func gauge(
    _ name: String, _ help: String, value: @escaping @Sendable (Stats) -> Int?
  ) -> MetricFamily {
    MetricFamily(.gauge, name, help) { stats in
      value(stats).map { [([], .number(number($0)))] } ?? []
    }
  }

  /// A gauge with one label.
  static func gauges(
    _ name: String, by label: String, _ help: String,
    values: @escaping @Sendable (Stats) -> [String: Int]
  ) -> MetricFamily {
    MetricFamily(.gauge, name, help) { labelled(values($0), by: label) }
  }

  /// A gauge or counter of fractions, such as seconds; `nil`: it has no value now.
  static func fraction(
    _ kind: Kind, _ name: String, _ help: String, value: @escaping @Sendable (Stats) -> Double?
  ) -> MetricFamily {
    MetricFamily(kind, name, help) { stats in value(stats).map { [([], .number($0))] } ?? [] }
  }

  /// A histogram without labels.
  static func histogram(
    _ name: String, _ help: String, value: @escaping @Sendable (Stats) -> LatencyFigures?
  ) -> MetricFamily {
    MetricFamily(.histogram, name, help) { stats in
      value(stats).map { [([], .histogram($0))] } ?? []
    }
  }

  /// A histogram with one label.
  static func histograms(
    _ name: String, by label: String, _ help: String,
    values: @escaping @Sendable (Stats) -> [String: LatencyFigures?]
  ) -> MetricFamily {
    MetricFamily(.histogram, name, help) { stats in
      values(stats).sorted { $0.key < $1.key }.compactMap { key, value in
        value.map { ([(label, key)], .histogram($0)) }
      }
    }
  }

  private static func labelled(_ values: [String: Int], by label: String) -> Samples {
    values.sorted { $0.key < $1.key }.map { ([(label, $0.key)], .number(number($0.value))) }
  }

  /// Returns a number; the largest integer means that there is no limit.
  private static func number(_ value: Int) -> Double {
    value == .max ? .infinity : Double(value)
  }
}
