// PageDescription: what the page knows of its server: parameters, values, presets, samples.

import Core

/// The content of `/page/parameters.json`. The page makes its controls from it.
struct PageDescription: Encodable {
  /// Of Pictor.
  let version: String
  /// What the listener has: images, figures, or both.
  let listener: Listener
  let hasOperators: Bool
  /// Which requests need a signature.
  let signing: String
  /// URLs to try first.
  let samples: [String]
  /// Output formats in the order in which `format=auto` prefers them.
  let autoFormats: [String]
  let groups: [Group]

  /// What a listener has.
  struct Listener: Encodable {
    let images: Bool
    /// Whether it has the figures of `/stats` and operators' paths.
    let figures: Bool
  }

  struct Group: Encodable {
    let title: String
    let parameters: [Parameter]
  }

  /// A parameter, as its row of the table describes it.
  struct Parameter: Encodable {
    let name: String
    let help: String
    /// The allowed values, as error messages say them.
    let allowed: String
    /// The value that stands for an absent parameter.
    let standard: String?
    /// Single values.
    let names: [String]
    /// The form of other values: `text`, `color`, `point`, `area` or `url`.
    let form: String?
    let numbers: Numbers?
    let unit: String?
    /// Whether unsigned requests may use it.
    let open: Bool
    /// The names that unsigned requests may not use, if they may use others.
    let closed: [String]
  }

  struct Numbers: Encodable {
    let minimum: Double
    /// Absent if only the size of an integer limits the number.
    let maximum: Double?
    /// Whether only whole numbers are allowed.
    let whole: Bool
    /// Whether the minimum itself is not allowed.
    let above: Bool
  }

  /// Describes a listener.
  init(of audience: Audience, configuration: ServerConfiguration, rules: RequestRules) {
    version = pictorVersion
    listener = Listener(images: audience != .operators, figures: audience != .clients)
    hasOperators = !configuration.operators.isEmpty
    signing = configuration.signing.mode.rawValue
    samples = configuration.samples
    autoFormats = configuration.imaging.autoFormats.map(\.mediaType)
    groups = ParameterGroup.allCases.map { group in
      Group(
        title: group.rawValue,
        parameters: ImageParameter.table.filter { $0.group == group }
          .map { Parameter($0, rules: rules) })
    }
  }
}

extension PageDescription.Parameter {
  fileprivate init(_ parameter: ImageParameter, rules: RequestRules) {
    let values = parameter.allowed(rules)
    let isOpen = { parameter.isOpen(value: $0, rules: rules) }
    name = parameter.name
    help = parameter.help
    allowed = values.text
    standard = parameter.standard
    names = values.names
    form = values.form?.rawValue
    numbers = values.numbers.map(PageDescription.Numbers.init)
    unit = values.unit
    let hasOthers = values.names.isEmpty || values.numbers != nil || values.form != nil
    // No value of a table is empty, so an empty one stands for all that have no name.
    let open = values.names.contains(where: isOpen) || hasOthers && isOpen("")
    self.open = open
    closed = open ? values.names.filter { !isOpen($0) } : []
  }
}

extension PageDescription.Numbers {
  /// The largest whole number that JavaScript represents exactly: 2⁵³ − 1.
  private static let largest = (1 << 53) - 1

  fileprivate init(_ numbers: AllowedValues.Numbers) {
    switch numbers {
    case .whole(let range):
      self.init(
        minimum: Double(range.lowerBound),
        maximum: range.upperBound > Self.largest ? nil : Double(range.upperBound), whole: true,
        above: false)
    case .decimal(let range):
      self.init(
        minimum: range.lowerBound, maximum: range.upperBound, whole: false, above: false)
    case .decimalAbove(let range):
      self.init(minimum: range.lowerBound, maximum: range.upperBound, whole: false, above: true)
    }
  }
}
