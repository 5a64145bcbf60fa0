// MetricText: Prometheus's text format 0.0.4, and OpenMetrics 1.0.

/// Writes families in a format that Prometheus reads.
///
/// OpenMetrics differs in the names of counters' families, which lack `_total`, in units, exemplars
/// and its end.
public struct MetricText {
  /// A text format.
  public enum Format: Sendable {
    /// https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
    case prometheus
    /// https://prometheus.io/docs/specs/om/open_metrics_spec/
    case openMetrics

    /// The value of `Content-Type`.
    public var contentType: String {
      switch self {
      case .prometheus: "text/plain; version=0.0.4; charset=utf-8"
      case .openMetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8"
      }
    }
  }

  /// The units that end names, before `_total`.
  private static let units = ["seconds", "bytes", "ratio"]

  private let isOpen: Bool
  private var text = ""

  /// Returns the figures as the text of `/metrics`: the help, type and samples of each family.
  public static func bytes(of figures: Figures, as format: Format = .prometheus) -> [UInt8] {
    var text = MetricText(isOpen: format == .openMetrics)
    text.text.reserveCapacity(65_536)
    for family in figures.families { text.add(family) }
    if text.isOpen { text.text += "# EOF\n" }
    return Array(text.text.utf8)
  }

  private mutating func add(_ family: MetricFamily) {
    let isNamedApart = isOpen && family.type == "counter"
    let name = isNamedApart ? String(family.name.dropLast("_total".count)) : family.name
    text += "# HELP \(name) \(Self.escaped(family.help, quote: isOpen))\n"
    text += "# TYPE \(name) \(family.type)\n"
    if isOpen, let unit = Self.units.first(where: { name.hasSuffix("_" + $0) }) {
      text += "# UNIT \(name) \(unit)\n"
    }
    for sample in family.samples {
      switch sample.value {
      case .flag(let flag): add(family.name, sample.labels, flag ? "1" : "0")
      case .integer(let count):
        add(family.name, sample.labels, Self.text(of: count == .max ? .infinity : Double(count)))
      case .real(let number): add(family.name, sample.labels, Self.text(of: number))
      case .latency(let figures): add(family.name, sample.labels, figures)
      case .text, .texts, .group: break
      }
    }
  }

  private mutating func add(_ name: String, _ labels: [[String]], _ figures: LatencyFigures) {
    let exemplars = isOpen ? figures.exemplars : []
    let bounds = LatencyFigures.bounds.map(Self.text) + ["+Inf"]
    for (place, count) in (figures.buckets + [figures.count]).enumerated() {
      add(
        name + "_bucket", labels + [["le", bounds[place]]], "\(count)",
        exemplars.isEmpty ? nil : exemplars[place])
    }
    add(name + "_sum", labels, Self.text(of: figures.sumSeconds))
    add(name + "_count", labels, "\(figures.count)")
  }

  private mutating func add(
    _ name: String, _ labels: [[String]], _ value: String, _ exemplar: Exemplar? = nil
  ) {
    text += name
    if !labels.isEmpty { add(labels) }
    text += " \(value)"
    if let exemplar {
      text += " # "
      add([["trace_id", exemplar.traceID]])
      text += " \(Self.text(of: Double(exemplar.microseconds) / 1e6))"
      text += " \(Self.text(of: Double(exemplar.time) / 1e6))"
    }
    text += "\n"
  }

  private mutating func add(_ labels: [[String]]) {
    text += "{"
    for (index, label) in labels.enumerated() {
      if index > 0 { text += "," }
      text += "\(label[0])=\"\(Self.escaped(label[1], quote: true))\""
    }
    text += "}"
  }

  /// Returns a number as Go's parser reads it: whole ones without a point.
  static func text(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number > 0 ? "+Inf" : "-Inf" }
    if let whole = Int(exactly: number), abs(whole) < 1 << 53 { return "\(whole)" }
    return "\(number)"
  }

  /// Returns a text with backslashes, line feeds and, if wanted, quotes escaped.
  static func escaped(_ text: String, quote: Bool) -> String {
    guard text.utf8.contains(where: { $0 == 0x5C || $0 == 0x0A || $0 == 0x22 }) else {
      return text
    }
    var escaped = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": escaped += "\\\\"
      case "\n": escaped += "\\n"
      case "\"" where quote: escaped += "\\\""
      default: escaped.unicodeScalars.append(scalar)
      }
    }
    return escaped
  }
}
