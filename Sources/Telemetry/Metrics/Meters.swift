// Meters: lock-free counters and gauges, declared with their names in `/stats` and `/metrics`.

import Synchronization

/// A counter, gauge or histogram with a name. `Figures(of:)` finds those of an object.
protocol Meter {
  /// Adds the present value.
  func add(to figures: inout Figures)
}

/// What `/stats` and `/metrics` say about a meter.
private final class Description: Sendable {
  let key: String
  let name: String
  let help: String
  let labels: KeyValuePairs<String, String>

  init(_ key: String, _ name: String, _ help: String, _ labels: KeyValuePairs<String, String>) {
    self.key = key
    self.name = name
    self.help = help
    self.labels = labels
  }

  func add(_ value: some FigureValue, to figures: inout Figures) {
    figures.add(key, value, name, help, labels)
  }
}

/// A value that can rise and fall.
public typealias Gauge = Counter

/// A count: monotonic, but as a gauge.
public final class Counter: Sendable, Meter {
  private let storage: Atomic<Int>
  private let description: Description?

  /// Creates a counter without a name.
  public init(_ value: Int = 0) {
    storage = Atomic(value)
    description = nil
  }

  /// Creates a counter at 0, with its key in `/stats`, its name in `/metrics`, and what it counts.
  public init(
    _ key: String, _ name: String, _ help: String, _ labels: KeyValuePairs<String, String> = [:]
  ) {
    storage = Atomic(0)
    description = Description(key, name, help, labels)
  }

  /// Adds `amount`, which is negative only for a gauge.
  public func add(_ amount: Int = 1) {
    storage.wrappingAdd(amount, ordering: .relaxed)
  }

  /// Replaces a gauge's value.
  public func set(_ value: Int) { storage.store(value, ordering: .relaxed) }

  /// The value now.
  public var value: Int { storage.load(ordering: .relaxed) }

  func add(to figures: inout Figures) { description?.add(value, to: &figures) }
}

/// Counters by code, such as an error's. The number of codes is small.
public final class CodeCounts: Sendable, Meter {
  private let counts = Lock<[String: Int]>([:])
  private let metric: (key: String, name: String, label: String, help: String)?

  /// Creates an empty set of counters without a name.
  public init() { metric = nil }

  /// Creates an empty set of counters, with its key in `/stats`, its name and label in `/metrics`,
  /// and what it counts.
  public init(_ key: String, _ name: String, by label: String, _ help: String) {
    metric = (key, name, label, help)
  }

  /// Counts one occurrence.
  public func add(_ code: String) {
    counts.withLock { $0[code, default: 0] += 1 }
  }

  /// The counts so far.
  public var values: [String: Int] { counts.withLock { $0 } }

  /// The sum of all counts.
  public var sum: Int { values.values.reduce(0, +) }

  func add(to figures: inout Figures) {
    if let metric { figures.add(metric.key, values, metric.name, by: metric.label, metric.help) }
  }
}

extension LatencyHistogram: Meter {
  func add(to figures: inout Figures) {
    if let metric { figures.add(metric.key, self.figures, metric.name, metric.help) }
  }
}

extension Figures {
  /// Creates the figures of a budget of bytes, for the group `budgets`.
  public init(_ budget: ByteBudget, named name: String) {
    self.init(
      budget: name, bytes: budget.used, peak: budget.peak, limit: budget.limit,
      refused: budget.refused)
  }

  /// Creates the figures of a budget of bytes from their values.
  public init(budget name: String, bytes: Int, peak: Int, limit: Int, refused: Int) {
    self.init()
    add("bytes", bytes, "pictor_budget_used_bytes", "Bytes held now.")
    add("peak", peak, "pictor_budget_peak_bytes", "The most bytes held at one time.")
    add(
      "limit", limit, "pictor_budget_limit_bytes", "The most bytes that may be held; 0: no limit.")
    add("refused", refused, "pictor_budget_refusals_total", "How often bytes did not fit.")
    label("budget", name)
  }
}
