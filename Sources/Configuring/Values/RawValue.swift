// RawValue: an untyped value from JSON5 or from the text of a variable.

import FoundationEssentials

/// The untyped value of a key. Used only by `ConfigurationKey`.
enum RawValue: Decodable, Hashable, Sendable {
  case null
  case boolean(Bool)
  case number(Double)
  case string(String)
  case array([RawValue])
  case object([String: RawValue])
  /// From an environment variable or an option: all is text. A list is comma-separated or JSON5.
  case argument(String)

  init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode(Double.self) {
      self = .number(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([RawValue].self) {
      self = .array(value)
    } else {
      self = .object(try container.decode([String: RawValue].self))
    }
  }

  /// Parses JSON5 (https://spec.json5.org). Returns `nil` if the text is invalid.
  init?(json5 text: String) {
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    guard let value = try? decoder.decode(RawValue.self, from: Data(text.utf8)) else { return nil }
    self = value
  }

  /// The value as a Boolean.
  var boolean: Bool? {
    switch self {
    case .boolean(let flag): flag
    case .argument(let text): Bool(text)
    default: nil
    }
  }

  /// The value as a whole number.
  var integer: Int? {
    switch self {
    case .number(let number): Int(exactly: number)
    case .argument(let text): text.isDigits ? Int(text) : nil
    default: nil
    }
  }

  /// The value as a number.
  var number: Double? {
    switch self {
    case .number(let number): number
    case .argument(let text): Double(text)
    default: nil
    }
  }

  /// The value as text.
  var text: String? {
    switch self {
    case .string(let text), .argument(let text): text
    default: nil
    }
  }

  /// The value as texts by name.
  var map: [String: String]? {
    switch self {
    case .object(let members):
      let texts = members.compactMapValues(\.text)
      return texts.count == members.count ? texts : nil
    case .argument(let text):
      if text.first(where: { $0 != " " }) == "{" { return RawValue(json5: text)?.map }
      var texts: [String: String] = [:]
      for item in list ?? [] {
        let parts = item.split(separator: "=", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        texts[String(parts[0])] = String(parts[1])
      }
      return texts
    default: return nil
    }
  }

  /// The value as a list of texts.
  var list: [String]? {
    switch self {
    case .array(let values):
      let texts = values.compactMap(\.text)
      return texts.count == values.count ? texts : nil
    case .argument(let text):
      if let values = listOfArgument { return values.list }
      return text.isEmpty
        ? []
        : text.split(separator: ",", omittingEmptySubsequences: false).map { item in
          String(item.drop { $0 == " " })
        }
    default: return nil
    }
  }

  /// The value as a list of whole numbers.
  var integers: [Int]? {
    let values: [RawValue]
    switch self {
    case .array(let array): values = array
    case .argument:
      if let list = listOfArgument { return list.integers }
      values = (list ?? []).map(RawValue.argument)
    default: return nil
    }
    // A number in quotes counts, too.
    let numbers = values.compactMap { $0.integer ?? $0.text.flatMap { Self.argument($0).integer } }
    return numbers.count == values.count ? numbers : nil
  }

  /// Returns the value; of an argument, the JSON5 in it, which `name` describes.
  func structure(_ name: String) throws(MemberProblems) -> RawValue {
    guard case .argument(let text) = self else { return self }
    guard let value = RawValue(json5: text) else { throw MemberProblems("not a JSON5 \(name)") }
    return value
  }

  /// The list in an argument that is the JSON5 text of one, `["a", "b"]`; `nil` for other
  /// arguments, such as the host `[::1]`, and other values.
  var listOfArgument: RawValue? {
    guard case .argument(let text) = self, text.first(where: { $0 != " " }) == "[",
      let value = RawValue(json5: text), case .array = value
    else { return nil }
    return value
  }
}

extension RawValue: CustomStringConvertible {
  /// The value as shown in error messages.
  var description: String {
    switch self {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .number(let value): Int(exactly: value).map { "\($0)" } ?? "\(value)"
    case .string(let text), .argument(let text): "'\(text)'"
    case .array(let values): "[" + values.map(\.description).joined(separator: ", ") + "]"
    case .object: "an object"
    }
  }
}
