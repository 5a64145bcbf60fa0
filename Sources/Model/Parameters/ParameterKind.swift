// ParameterKind: the kinds of values that parameters have, and their one text.

/// The text of a value, and who wrote it.
public struct ParameterText: Sendable {
  /// The text, decoded.
  public let text: String
  /// Whether Pictor wrote it. Clients write decimals without exponents, and in other ways than the
  /// shortest.
  let isCanonical: Bool

  /// A text that a client wrote.
  public init(_ text: String) { self.init(text, isCanonical: false) }

  init(_ text: String, isCanonical: Bool) {
    self.text = text
    self.isCanonical = isCanonical
  }

  /// Reads digits only: no sign, blank or exponent.
  public func whole(in range: ClosedRange<Int>) -> Int? {
    text.isDigits ? Int(text).flatMap { range.contains($0) ? $0 : nil } : nil
  }

  /// Reads digits with an optional fraction; the digits before the point may be missing. A client
  /// has 20 characters, which exceeds the precision of a `Double`.
  func decimal(in range: ClosedRange<Double>) -> Double? {
    if !isCanonical {
      let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
      guard text.utf8.count <= 20, (1...2).contains(parts.count), parts.last?.isEmpty == false,
        parts.allSatisfy({ $0.allSatisfy(\.isDigit) })
      else { return nil }
    }
    return Double(text).flatMap { range.contains($0) ? $0 : nil }
  }

  /// Reads a decimal number that may be negative.
  func signed(upTo limit: Double) -> Double? {
    guard text.hasPrefix("-") else { return decimal(in: 0...limit) }
    return part(String(text.dropFirst())).decimal(in: 0...limit).map { -$0 }
  }

  /// Reads per cent from -100% to 100%.
  var percent: Double? {
    text.hasSuffix("%") ? part(String(text.dropLast())).signed(upTo: 100) : nil
  }

  /// Returns a part of this text.
  func part(_ text: String) -> ParameterText { ParameterText(text, isCanonical: isCanonical) }

  /// Returns the parts between commas, if there are `count`.
  func parts(_ count: Int) -> [ParameterText]? {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == count else { return nil }
    return parts.map { part(String($0)) }
  }

  /// The shortest text that is read back as the same number.
  static func of(_ number: Double) -> String {
    let text = "\(number)"
    return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
  }
}

/// How the values of a parameter are read and written.
struct ParameterKind<Value: Hashable & Sendable>: Sendable {
  /// The values, for messages.
  let allowed: AllowedValues
  /// Reads a value; `nil` if it is not allowed.
  let read: @Sendable (ParameterText) -> Value?
  /// Returns the one text of a value; `nil` for one that only the absence of the parameter has.
  let text: @Sendable (Value) -> String?

  /// The kind of a value that may be absent.
  var optional: ParameterKind<Value?> {
    ParameterKind<Value?>(
      allowed: allowed, read: { [read] in read($0).map { $0 } },
      text: { [text] in $0.flatMap(text) })
  }
}

extension ParameterKind where Value == Bool {
  /// `0` or `1`.
  static var flag: ParameterKind {
    ParameterKind(
      allowed: .flag, read: { ["0": false, "1": true][$0.text] }, text: { $0 ? "1" : "0" })
  }
}

extension ParameterKind where Value == Int {
  /// A whole number.
  static func whole(
    _ range: ClosedRange<Int>, unit: String? = nil, saying text: String? = nil
  ) -> ParameterKind {
    ParameterKind(
      allowed: .whole(range, unit: unit, saying: text), read: { $0.whole(in: range) },
      text: { "\($0)" })
  }
}

extension ParameterKind where Value == Double {
  /// A decimal number.
  static func decimal(_ range: ClosedRange<Double>, unit: String? = nil) -> ParameterKind {
    ParameterKind(
      allowed: .decimal(range, unit: unit), read: { $0.decimal(in: range) },
      text: ParameterText.of)
  }

  /// A factor, or by how much it differs from 1 in per cent.
  static func factor(_ range: ClosedRange<Double>) -> ParameterKind {
    ParameterKind(
      allowed: AllowedValues(
        text: AllowedValues.decimal(range).text + ", or from -100% to 100%",
        numbers: .decimal(range)),
      read: { given in
        given.percent.map { (100 + $0) / 100 } ?? given.decimal(in: range)
      },
      text: ParameterText.of)
  }

  /// A decimal number above the lowest one of the range.
  static func decimal(above range: ClosedRange<Double>, saying text: String) -> ParameterKind {
    ParameterKind(
      allowed: AllowedValues(text: text, numbers: .decimalAbove(range)),
      read: { $0.decimal(in: range).flatMap { $0 > range.lowerBound ? $0 : nil } },
      text: ParameterText.of)
  }
}

extension ParameterKind where Value: RawRepresentable<String> {
  /// One of these names.
  static func names(_ values: [Value]) -> ParameterKind {
    ParameterKind(
      allowed: .names(values.map(\.rawValue)),
      read: { given in values.first { $0.rawValue == given.text } },
      text: { values.contains($0) ? $0.rawValue : nil })
  }
}

extension ParameterKind where Value == Color {
  /// A colour.
  static var color: ParameterKind {
    ParameterKind(
      allowed: .color, read: { Color(hexadecimal: $0.text) },
      text: { $0.alpha == 255 ? String($0.hexadecimal.dropLast(2)) : $0.hexadecimal })
  }
}

extension ParameterKind where Value == AspectRatio {
  /// `16:9`, or the quotient.
  static var ratio: ParameterKind {
    ParameterKind(
      allowed: AllowedValues(
        text: "width:height, two numbers above 0 such as 16:9, at most 1000:1", form: .ratio),
      read: { given in
        let parts = given.text.split(separator: ":", omittingEmptySubsequences: false).map {
          given.part(String($0)).decimal(in: AspectRatio.numbers)
        }
        switch parts.count {
        case 1: return parts[0].flatMap(AspectRatio.init)
        case 2: return parts[0].flatMap { width in parts[1].flatMap { AspectRatio(width / $0) } }
        default: return nil
        }
      },
      text: { ParameterText.of($0.value) })
  }
}

extension ParameterKind where Value == Edges {
  /// One to four widths, as in CSS.
  static var edges: ParameterKind {
    ParameterKind(
      allowed: AllowedValues(
        text:
          "1 to 4 whole numbers from 0 to 65535, as CSS has them: all, or top,right,bottom,left",
        unit: "points", form: .text),
      read: { given in
        let parts = given.text.split(separator: ",", omittingEmptySubsequences: false)
        let widths = parts.compactMap { given.part(String($0)).whole(in: Edges.range) }
        return widths.count == parts.count ? Edges(widths) : nil
      },
      text: { $0.all.map(String.init).joined(separator: ",") })
  }
}

extension ParameterKind where Value == CornerRadius {
  /// A radius in points, four of them, `max` or `ellipse`.
  static var radius: ParameterKind {
    let range = CornerRadius.pointRange
    return ParameterKind(
      allowed: AllowedValues(
        text: AllowedValues.text(range)
          + ", four of them with commas, clockwise from the top left, "
          + "of which some may be 0, max or ellipse",
        names: ["max", "ellipse"], numbers: .whole(range), unit: "points", form: .text),
      read: { given in
        switch given.text {
        case "max": return .maximum
        case "ellipse": return .ellipse
        default:
          guard let parts = given.parts(1) ?? given.parts(4) else { return nil }
          let radii = parts.compactMap { $0.whole(in: 0...range.upperBound) }
          guard radii.count == parts.count, let most = radii.max(), most > 0 else { return nil }
          return radii.min() == most ? .points(most) : .corners(radii)
        }
      },
      text: {
        switch $0 {
        case .points(let points): "\(points)"
        case .corners(let radii): radii.map(String.init).joined(separator: ",")
        case .maximum: "max"
        case .ellipse: "ellipse"
        }
      })
  }
}
