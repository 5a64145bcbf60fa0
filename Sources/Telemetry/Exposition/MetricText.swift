// MetricText: Prometheus's text format, version 0.0.4.

/// Writes families in Prometheus's text format
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
public struct MetricText {
  /// The value of `Content-Type`.
  public static let contentType: StaticString = "text/plain; version=0.0.4; charset=utf-8"

  /// The text so far, in UTF-8.
  public private(set) var text = ""

  /// Creates an empty text.
  public init() { text.reserveCapacity(65_536) }

  /// Returns the figures as the text of `/metrics`.
  public static func bytes(of stats: Stats) -> [UInt8] {
    var text = MetricText()
    for family in MetricFamily.all { text.add(family, of: stats) }
    return Array(text.text.utf8)
  }

  /// Adds a family: its help, its type and its samples. A family without a sample has the first two.
  public mutating func add(_ family: MetricFamily, of stats: Stats) {
    text += "# HELP \(family.name) \(Self.escaped(family.help, quote: false))\n"
    text += "# TYPE \(family.name) \(family.kind.rawValue)\n"
    for (labels, value) in family.samples(stats) {
      switch value {
      case .number(let number): add(family.name, labels, Self.text(of: number))
      case .histogram(let figures): add(family.name, labels, figures)
      }
    }
  }

  private mutating func add(
    _ name: String, _ labels: [MetricFamily.Label], _ figures: LatencyFigures
  ) {
    for (bound, count) in zip(LatencyFigures.bounds, figures.buckets) {
      add(name + "_bucket", labels + [("le", Self.text(of: bound))], "\(count)")
    }
    add(name + "_bucket", labels + [("le", "+Inf")], "\(figures.count)")
    add(name + "_sum", labels, Self.text(of: figures.sumSeconds))
    add(name + "_count", labels, "\(figures.count)")
  }

  private mutating func add(_ name: String, _ labels: [MetricFamily.Label], _ value: String) {
    text += name
    if !labels.isEmpty {
      text += "{"
      for (index, label) in labels.enumerated() {
        if index > 0 { text += "," }
        text += "\(label.name)=\"\(Self.escaped(label.value, quote: true))\""
      }
      text += "}"
    }
    text += " \(value)\n"
  }

  /// Returns a number as Go's parser reads it: whole ones without a point.
  static func text(of number: Double) -> String {
    if number.isNaN { return "NaN" }
    if number.isInfinite { return number > 0 ? "+Inf" : "-Inf" }
    if let whole = Int(exactly: number), abs(whole) < 1 << 53 { return "\(whole)" }
    return "\(number)"
  }

  /// Returns a text with backslashes, line feeds and, in a label's value, quotes escaped.
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
