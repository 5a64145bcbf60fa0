// Figures: the values of `/stats` and `/metrics` at one moment, and the calls that add them.

/// The figures of a part or of the whole server, as `/stats` and `/metrics` show them.
///
/// A figure is added once, with its key in `/stats`, its name in `/metrics` and its help:
/// - A name tells the type: `_total` ends that of a counter; durations are histograms, all others
///   gauges.
/// - Figures of one name differ in their labels. The first one's help is that of all.
/// - A figure without a name is for `/stats` alone: Prometheus computes it from others.
/// - A number that is added again, with the same key or labels, adds up.
@dynamicMemberLookup
public struct Figures: Sendable {
  /// The content of `/stats`, by key.
  package var values: [String: Figure] = [:]
  /// The content of `/metrics`, in order.
  private(set) var families: [MetricFamily] = []
  private var indices: [String: Int] = [:]

  /// Creates an empty set of figures.
  public init() {}

  /// Creates the figures of the counters, gauges and histograms that are properties of `owner` and
  /// have names.
  public init(of owner: some AnyObject) {
    for property in Mirror(reflecting: owner).children {
      (property.value as? any Meter)?.add(to: &self)
    }
  }

  /// The figure with a key, in camel case: `figures.givenUp` is `given_up`; an empty group if it is
  /// missing.
  public subscript(dynamicMember key: String) -> Figure { Figure.group(values)[dynamicMember: key] }

  /// Adds a figure that only `/stats` shows.
  public mutating func add(_ key: String, _ value: some FigureValue) {
    if case .integer(let first) = values[key], case .integer(let more) = value.figure {
      values[key] = .integer(first + more)
    } else {
      values[key] = value.figure
    }
  }

  /// Adds a figure. Without a key, only `/metrics` shows it.
  public mutating func add(
    _ key: String?, _ value: some FigureValue, _ name: String, _ help: String,
    _ labels: KeyValuePairs<String, String> = [:]
  ) {
    if let key { add(key, value) }
    add(
      [MetricFamily.Sample(labels: labels.map { [$0.key, $0.value] }, value: value.figure)],
      to: name, help)
  }

  /// Adds counts that differ in one label.
  public mutating func add(
    _ key: String, _ counts: [String: Int], _ name: String, by label: String, _ help: String
  ) {
    values[key] = .group(counts.mapValues { .integer($0) })
    add(
      counts.sorted { $0.key < $1.key }.map {
        MetricFamily.Sample(labels: [[label, $0.key]], value: .integer($0.value))
      }, to: name, help)
  }

  /// Adds the figures of a part as a group.
  public mutating func add(_ key: String, _ part: Figures) {
    values[key] = .group(part.values)
    for family in part.families { add(family.samples, to: family.name, family.help) }
  }

  /// Adds the figures of a part beside its own.
  public mutating func merge(_ part: Figures) {
    values.merge(part.values) { $1 }
    for family in part.families { add(family.samples, to: family.name, family.help) }
  }

  /// Gives another label to all that has been added.
  public mutating func label(_ name: String, _ value: String) {
    for index in families.indices {
      for sample in families[index].samples.indices {
        families[index].samples[sample].labels.insert([name, value], at: 0)
      }
    }
  }

  private mutating func add(_ samples: [MetricFamily.Sample], to name: String, _ help: String) {
    if let index = indices[name] {
      for sample in samples { families[index].add(sample) }
    } else {
      indices[name] = families.count
      families.append(MetricFamily(name: name, help: help, samples: samples))
    }
  }
}

/// Figures with one name in `/metrics`.
struct MetricFamily: Sendable {
  struct Sample: Sendable {
    /// The name and the value of each.
    var labels: [[String]]
    var value: Figure
  }

  let name: String
  let help: String
  var samples: [Sample]

  /// The type in Prometheus's words.
  var type: String {
    if case .latency = samples.first?.value { return "histogram" }
    return name.hasSuffix("_total") ? "counter" : "gauge"
  }

  mutating func add(_ sample: Sample) {
    if let same = samples.firstIndex(where: { $0.labels == sample.labels }),
      case .integer(let first) = samples[same].value, case .integer(let more) = sample.value
    {
      samples[same].value = .integer(first + more)
    } else {
      samples.append(sample)
    }
  }
}

// MARK: Values

/// A value in `/stats` and `/metrics`.
@dynamicMemberLookup
public enum Figure: Hashable, Sendable {
  /// Yes or no; in `/metrics` 1 or 0.
  case flag(Bool)
  /// A whole number. The largest integer means that there is no limit.
  case integer(Int)
  /// A number with a fraction.
  case real(Double)
  /// Durations.
  case latency(LatencyFigures)
  /// A text, or several; only in `/stats`.
  case text(String), texts([String])
  /// Figures by their keys; only in `/stats`.
  case group([String: Figure])

  /// The whole number; -1 for another kind of figure.
  public var whole: Int { if case .integer(let number) = self { number } else { -1 } }

  /// The figure of a group with a key, in camel case; an empty group if it is missing.
  public subscript(dynamicMember key: String) -> Figure {
    let key = key.replacing(/[A-Z]+/) { "_" + $0.output.lowercased() }
    return switch self {
    case .group(let values): values[key] ?? .group([:])
    case .latency(let latency): latency.group[key] ?? .group([:])
    default: .group([:])
    }
  }
}

/// A value that is a figure.
public protocol FigureValue {
  /// The figure.
  var figure: Figure { get }
}

extension Figure: FigureValue {
  /// Itself.
  public var figure: Figure { self }
}

extension Int: FigureValue {
  /// The number as a figure.
  public var figure: Figure { .integer(self) }
}

extension Double: FigureValue {
  /// The number as a figure.
  public var figure: Figure { .real(self) }
}

extension Bool: FigureValue {
  /// The flag as a figure.
  public var figure: Figure { .flag(self) }
}

extension LatencyFigures: FigureValue {
  /// The durations as a figure.
  public var figure: Figure { .latency(self) }

  /// The figures in `/stats`.
  var group: [String: Figure] {
    [
      "count": .integer(count), "sum_seconds": .real(sumSeconds), "p50_ms": .real(p50),
      "p95_ms": .real(p95), "p99_ms": .real(p99),
    ]
  }
}

// MARK: JSON

extension Figure: Encodable {
  /// Writes a value of `/stats`.
  public func encode(to encoder: any Encoder) throws {
    var value = encoder.singleValueContainer()
    switch self {
    case .flag(let flag): try value.encode(flag)
    case .integer(let count): try value.encode(count)
    case .real(let number): try value.encode(number)
    case .latency(let latency): try value.encode(latency.group)
    case .text(let text): try value.encode(text)
    case .texts(let texts): try value.encode(texts)
    case .group(let values): try value.encode(values)
    }
  }
}

extension Figures: Encodable {
  /// Writes `/stats`.
  public func encode(to encoder: any Encoder) throws { try values.encode(to: encoder) }
}
