// WeightedElement: what clients prefer, by the weights of Accept and Accept-Encoding.

import Core

/// An element of a field such as `Accept`, with its weight (RFC 9110, section 12.4.2).
struct WeightedElement: Equatable {
  /// In lower case.
  let name: String
  /// The parameters besides the weight, in lower case: `version=1.0.0`.
  let parameters: [String]
  /// In thousandths, 0–1,000.
  let weight: Int

  /// The longest field that is parsed, in bytes; browsers and Prometheus send less than half of it.
  private static let longest = 1_000

  /// Parses a field's lines, joined by commas. Ignores invalid elements, and fields that are too
  /// long for an event loop.
  static func list(_ field: String) -> [WeightedElement] {
    guard field.utf8.count <= longest else { return [] }
    return field.lowercased().split(separator: ",").compactMap { element in
      let parts = element.split(separator: ";", omittingEmptySubsequences: false)
        .map { $0.trimming { $0 == " " || $0 == "\t" } }
      let weights = parts.dropFirst().filter { $0.hasPrefix("q=") }
      guard let name = parts.first, !name.isEmpty, weights.count < 2,
        let weight = weights.first.map({ Array($0.utf8.dropFirst(2)).withUnsafeBytes(thousandths) })
          ?? 1_000
      else { return nil }
      return WeightedElement(
        name: String(name),
        parameters: parts.dropFirst().filter { !$0.hasPrefix("q=") }.map(String.init),
        weight: weight)
    }
  }
}

/// Reads a weight, `0`, `0.5` or `1.000`, in thousandths (RFC 9110, section 12.4.2); `nil` for
/// anything else.
func thousandths(_ text: UnsafeRawBufferPointer) -> Int? {
  let zero = UInt8(ascii: "0")
  guard (1...5).contains(text.count), text[0] | 1 == zero + 1,
    text.count == 1 || text[1] == UInt8(ascii: ".")
  else { return nil }
  var value = Int(text[0] - zero) * 1_000
  var unit = 100
  for position in stride(from: 2, to: text.count, by: 1) {
    guard text[position].isDigit else { return nil }
    value += Int(text[position] - zero) * unit
    unit /= 10
  }
  return value <= 1_000 ? value : nil
}

extension [WeightedElement] {
  /// Whether `Accept-Encoding` prefers gzip to none (RFC 9110, section 12.5.3).
  var prefersGzip: Bool {
    func weight(_ names: String...) -> Int? {
      names.lazy.compactMap { name in first { $0.name == name }?.weight }.first
    }
    let gzip = weight("gzip", "x-gzip", "*") ?? 0
    return gzip > 0 && gzip >= weight("identity") ?? 0
  }

  /// Whether `Accept` prefers OpenMetrics 1.0 to Prometheus's text, which is the default.
  var prefersOpenMetrics: Bool {
    func weight(_ names: [String], version: String) -> Int {
      let fitting = filter { element in
        names.contains(element.name)
          && element.parameters.allSatisfy { !$0.hasPrefix("version=") || $0 == version }
      }
      return fitting.map(\.weight).max() ?? 0
    }
    let wanted = weight(["application/openmetrics-text"], version: "version=1.0.0")
    return wanted > 0 && wanted >= weight(["text/plain", "text/*"], version: "version=0.0.4")
  }
}

extension RequestContext {
  /// Returns the elements of a request field that has weights.
  func elements(of name: String) -> [WeightedElement] {
    WeightedElement.list(Forwarding.value(of: name, on: connection) ?? "")
  }

  /// Whether the client gets compressed texts.
  var prefersGzip: Bool { elements(of: "Accept-Encoding").prefersGzip }
}
