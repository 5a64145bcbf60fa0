// MetricText: Prometheus's text format, version 0.0.4.

/// Writes families in Prometheus's text format
/// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
public struct MetricText {
  /// The value of `Content-Type`.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  private var text = ""

  /// Returns the figures as the text of `/metrics`: the help, type and samples of each family.
  public static func bytes(of figures: Figures) -> [UInt8] {
    var text = MetricText()
    text.text.reserveCapacity(65_536)
    for family in figures.families { text.add(family) }
    return Array(text.text.utf8)
  }

  private mutating func add(_ family: MetricFamily) {
    text += "# HELP \(family.name) \(Self.escaped(family.help, quote: false))\n"
    text += "# TYPE \(family.name) \(family.type)\n"
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
    for (bound, count) in zip(LatencyFigures.bounds, figures.buckets) {
      add(name + "_bucket", labels + [["le", Self.text(of: bound)]], "\(count)")
    }
    add(name + "_bucket", labels + [["le", "+Inf"]], "\(figures.count)")
    add(name + "_sum", labels, Self.text(of: figures.sumSeconds))
    add(name + "_count", labels, "\(figures.count)")
  }

  private mutating func add(_ name: String, _ labels: [[String]], _ value: String) {
    text += name
    if !labels.isEmpty {
      text += "{"
      for (index, label) in labels.enumerated() {
        if index > 0 { text += "," }
        text += "\(label[0])=\"\(Self.escaped(label[1], quote: true))\""
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
