// AllowedValues: the values of a parameter, as error messages and the controls of the page say them.

import Platform

/// The values that a parameter can have. A value is one of the names, a number in the range, or has the form.
struct AllowedValues: Sendable {
  /// A range of numbers.
  enum Numbers: Sendable {
    /// Whole numbers.
    case whole(ClosedRange<Int>)
    /// Decimal numbers.
    case decimal(ClosedRange<Double>)
    /// Decimal numbers without the lowest one.
    case decimalAbove(ClosedRange<Double>)
  }

  /// The form of values that are neither names nor numbers.
  enum Form: String, Sendable {
    /// Any text.
    case text
    /// `rgb`, `rrggbb` or `rrggbbaa`.
    case color
    /// `x,y`.
    case point
    /// `x,y,w,h`.
    case area
    /// A URL.
    case url
  }

  /// All values, for error messages.
  var text: String
  /// Single values.
  var names: [String] = []
  /// The numbers among the values.
  var numbers: Numbers?
  /// What the numbers count, such as `points`.
  var unit: String?
  /// The form of the other values.
  var form: Form?

  /// Returns the single values that a wrong one probably stands for: `webp` for `WEBP`, `1` for `true`.
  func nearest(to value: String) -> [String] {
    if names == Self.flag.names {
      switch value.lowercased() {
      case "true", "yes", "on": return ["1"]
      case "false", "no", "off": return ["0"]
      default: return []
      }
    }
    return names.count > 1 ? NearestNames.of(value, among: names) : []
  }

  /// `0` and `1`.
  static let flag = AllowedValues(text: "0 or 1", names: ["0", "1"])
  /// A colour in hexadecimal.
  static let color = AllowedValues(text: "rgb, rrggbb or rrggbbaa in hexadecimal", form: .color)

  /// One of these names.
  static func names(_ names: [String], saying text: String? = nil) -> AllowedValues {
    AllowedValues(text: text ?? "one of " + names.joined(separator: ", "), names: names)
  }

  /// A whole number.
  static func whole(
    _ range: ClosedRange<Int>, unit: String? = nil, saying text: String? = nil
  ) -> AllowedValues {
    AllowedValues(text: text ?? ImageParameter.text(range), numbers: .whole(range), unit: unit)
  }

  /// A decimal number.
  static func decimal(_ range: ClosedRange<Double>, unit: String? = nil) -> AllowedValues {
    AllowedValues(text: ImageParameter.text(range), numbers: .decimal(range), unit: unit)
  }

  /// A decimal number above the lowest one of the range.
  static func decimal(above range: ClosedRange<Double>, saying text: String) -> AllowedValues {
    AllowedValues(text: text, numbers: .decimalAbove(range))
  }
}

/// The groups of parameters, in the order of docs/http-api.md and of the page.
enum ParameterGroup: String, CaseIterable, Sendable {
  case source = "Source"
  case size = "Size"
  case part = "Turn and crop"
  case effects = "Effects"
  case watermark = "Watermark"
  case output = "Output"
  case loading = "Caching and priority"
  case signature = "Signature"
}
