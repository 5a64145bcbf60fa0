// AllowedValues: the values of a parameter, as error messages and the controls of the page say
// them.

/// The values that a parameter can have. A value is one of the names, a number in the range, or has
/// the form.
public struct AllowedValues: Sendable {
  /// A range of numbers.
  public enum Numbers: Sendable {
    /// Whole numbers.
    case whole(ClosedRange<Int>)
    /// Decimal numbers.
    case decimal(ClosedRange<Double>)
    /// Decimal numbers without the lowest one.
    case decimalAbove(ClosedRange<Double>)
  }

  /// The form of values that are neither names nor numbers.
  public enum Form: String, Sendable {
    /// Any text.
    case text
    /// `rgb`, `rrggbb` or `rrggbbaa`.
    case color
    /// `x,y`.
    case point
    /// `width:height`.
    case ratio
    /// `x,y,w,h`.
    case area
    /// A URL.
    case url
  }

  /// All values, for error messages.
  public var text: String
  /// Single values.
  public var names: [String]
  /// The numbers among the values.
  public var numbers: Numbers?
  /// What the numbers count, such as `points`.
  public var unit: String?
  /// The form of the other values.
  public var form: Form?

  /// Creates the values of a parameter.
  public init(
    text: String, names: [String] = [], numbers: Numbers? = nil, unit: String? = nil,
    form: Form? = nil
  ) {
    self.text = text
    self.names = names
    self.numbers = numbers
    self.unit = unit
    self.form = form
  }

  /// Returns the single values that a wrong one probably stands for: `webp` for `WEBP`, `1` for
  /// `true`.
  public func nearest(to value: String) -> [String] {
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
  public static let flag = AllowedValues(text: "0 or 1", names: ["0", "1"])
  /// A colour in hexadecimal.
  static let color = AllowedValues(text: "rgb, rrggbb or rrggbbaa in hexadecimal", form: .color)

  /// One of these names.
  public static func names(_ names: [String], saying text: String? = nil) -> AllowedValues {
    AllowedValues(text: text ?? "one of " + names.joined(separator: ", "), names: names)
  }

  /// A whole number.
  public static func whole(
    _ range: ClosedRange<Int>, unit: String? = nil, saying text: String? = nil
  ) -> AllowedValues {
    AllowedValues(text: text ?? Self.text(range), numbers: .whole(range), unit: unit)
  }

  /// A decimal number.
  static func decimal(_ range: ClosedRange<Double>, unit: String? = nil) -> AllowedValues {
    AllowedValues(
      text: "a number from \(range.lowerBound) to \(range.upperBound)", numbers: .decimal(range),
      unit: unit)
  }

  /// How messages say a range of whole numbers.
  public static func text(_ range: ClosedRange<Int>) -> String {
    "a whole number from \(range.lowerBound) to \(range.upperBound)"
  }
}

/// The groups of parameters, in the order of docs/http-api.md and of the page.
public enum ParameterGroup: String, CaseIterable, Sendable {
  /// The image to load, and its frames.
  case source = "Source"
  /// The size of the result.
  case size = "Size"
  /// The part of the source.
  case part = "Turn and crop"
  /// What changes pixels.
  case effects = "Effects"
  /// The second image on top.
  case watermark = "Watermark"
  /// Format and quality.
  case output = "Output"
  /// How the image is loaded and stored.
  case loading = "Caching and priority"
  /// The signature.
  case signature = "Signature"
}
