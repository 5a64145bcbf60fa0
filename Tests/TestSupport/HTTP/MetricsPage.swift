// MetricsPage: reads Prometheus's text format as strictly as its server.

/// The content of `/metrics`, parsed.
public struct MetricsPage {
  /// The text violates the format.
  public struct Failure: Error, CustomStringConvertible {
    /// The line, and what is wrong.
    public let description: String
  }

  /// A sample: its name with suffix, its labels and its value.
  public struct Sample: Hashable {
    /// The family's name, with the suffix of a part of a histogram.
    public let name: String
    /// The values of the labels, by name.
    public let labels: [String: String]
    /// The value.
    public let value: Double
  }

  /// A family in its order: name, type, help and samples.
  public struct Family {
    /// The name.
    public let name: String
    /// The type, such as `counter`.
    public let type: String
    /// The help, without escapes.
    public let help: String
    /// The samples, in order.
    public var samples: [Sample] = []
  }

  /// The families, in order.
  public private(set) var families: [Family] = []

  /// Parses a page. Each family begins with HELP and TYPE, once, and its samples follow.
  public init(_ text: String) throws(Failure) {
    guard text.hasSuffix("\n") else { throw Failure(description: "no line feed at the end") }
    var help: (name: String, text: String)?
    for line in text.dropLast().split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasPrefix("# HELP ") {
        let parts = line.dropFirst(7).split(separator: " ", maxSplits: 1)
        guard parts.count == 2, help == nil else { throw Failure(description: "\(line)") }
        help = (String(parts[0]), try Self.plain(parts[1], inQuotes: false))
      } else if line.hasPrefix("# TYPE ") {
        let parts = line.dropFirst(7).split(separator: " ")
        guard parts.count == 2, let given = help, given.name == parts[0],
          !families.contains(where: { $0.name == given.name })
        else { throw Failure(description: "\(line)") }
        families.append(Family(name: given.name, type: String(parts[1]), help: given.text))
        help = nil
      } else {
        try add(line)
      }
    }
  }

  /// Returns the value of a sample; `nil` if there is none.
  public func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
    for family in families {
      for sample in family.samples where sample.name == name && sample.labels == labels {
        return sample.value
      }
    }
    return nil
  }

  private mutating func add(_ line: Substring) throws(Failure) {
    let failure = Failure(description: "not a sample of the last family: \(line)")
    guard let family = families.last else { throw failure }
    let end = line.firstIndex { $0 == "{" || $0 == " " } ?? line.endIndex
    let name = String(line[..<end])
    let suffixes = family.type == "histogram" ? ["_bucket", "_sum", "_count"] : [""]
    guard suffixes.contains(where: { family.name + $0 == name }) else { throw failure }
    var rest = line[end...]
    var labels: [String: String] = [:]
    if rest.first == "{" {
      repeat {
        rest = rest.dropFirst()
        guard let equals = rest.firstIndex(of: "=") else { throw failure }
        let label = String(rest[..<equals])
        rest = rest[equals...].dropFirst()
        guard rest.first == "\"" else { throw failure }
        var end = rest.index(after: rest.startIndex)
        while end < rest.endIndex, rest[end] != "\"" {
          end =
            rest.index(end, offsetBy: rest[end] == "\\" ? 2 : 1, limitedBy: rest.endIndex) ?? end
        }
        guard end < rest.endIndex, labels[label] == nil else { throw failure }
        labels[label] = try Self.plain(rest[..<end].dropFirst(), inQuotes: true)
        rest = rest[end...].dropFirst()
      } while rest.first == ","
      guard rest.first == "}" else { throw failure }
      rest = rest.dropFirst()
    }
    guard rest.first == " ", let value = Self.number(rest.dropFirst()) else { throw failure }
    let sample = Sample(name: name, labels: labels, value: value)
    guard !family.samples.contains(where: { $0.name == name && $0.labels == labels }) else {
      throw Failure(description: "twice: \(line)")
    }
    families[families.count - 1].samples.append(sample)
  }

  private static func number(_ text: Substring) -> Double? {
    switch text {
    case "+Inf": .infinity
    case "-Inf": -.infinity
    case "NaN": .nan
    default: Double(text)
    }
  }

  private static func plain(
    _ text: Substring, inQuotes: Bool
  ) throws(Failure) -> String {
    var plain = String.UnicodeScalarView()
    var scalars = text.unicodeScalars.makeIterator()
    while let scalar = scalars.next() {
      guard scalar == "\\" else {
        plain.append(scalar)
        continue
      }
      switch scalars.next() {
      case "\\": plain.append("\\")
      case "n": plain.append("\n")
      case "\"" where inQuotes: plain.append("\"")
      default: throw Failure(description: "an escape that does not exist: \(text)")
      }
    }
    return String(plain)
  }
}
