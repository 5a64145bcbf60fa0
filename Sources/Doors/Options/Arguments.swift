// Arguments: reads the arguments of peers' options: bounded numbers, flags, choices, queries.

import Core

/// Reads an argument, and returns its value in Pictor's query; `nil`: nothing is asked for.
typealias ArgumentReader = @Sendable (_ text: String) throws(OptionFault) -> String?

/// The readers of arguments that peers have in common.
enum Argument {
  /// The range of Pictor's `w` and `h`.
  static let sides = 1...65_535

  /// Reads digits with an optional sign.
  static func int(_ text: some StringProtocol, in range: ClosedRange<Int>) throws(OptionFault)
    -> Int
  {
    let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
    guard digits.isDigits, digits.utf8.count <= 9, let number = Int(text), range.contains(number)
    else { throw OptionFault("a whole number from \(range.lowerBound) to \(range.upperBound)") }
    return number
  }

  /// Reads digits with an optional sign and an optional fraction, at most 20 characters.
  static func number(_ text: some StringProtocol, in range: ClosedRange<Double>)
    throws(OptionFault) -> Double
  {
    let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
    let parts = digits.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard digits.utf8.count <= 20, parts.count <= 2, parts.contains(where: { !$0.isEmpty }),
      parts.allSatisfy({ $0.allSatisfy(\.isDigit) }),
      let size = Double(parts.count == 1 ? String(digits) : "0" + digits + "0"),
      range.contains(text.hasPrefix("-") ? -size : size)
    else {
      throw OptionFault(
        "a number from \(written(range.lowerBound)) to \(written(range.upperBound))")
    }
    return text.hasPrefix("-") ? -size : size
  }

  /// Returns a number as Pictor reads it: at most six decimals, no exponent, no negative zero.
  static func written(_ number: Double) -> String {
    let bounded = min(max(number, -1e12), 1e12)
    let units = Int((abs(bounded) * 1_000_000).rounded())
    let decimals = String(units % 1_000_000 + 1_000_000).dropFirst().reversed().drop { $0 == "0" }
    let text = decimals.isEmpty ? "" : "." + String(decimals.reversed())
    return (bounded < 0 && units > 0 ? "-" : "") + "\(units / 1_000_000)" + text
  }

  /// Returns a share as Pictor reads it: with a point.
  static func share(_ share: Double) -> String {
    let text = written(share)
    return text.contains(".") ? text : text + ".0"
  }

  /// Reads a flag. Without a value it is on.
  static func isOn(_ text: String) throws(OptionFault) -> Bool {
    switch text {
    case "", "1", "true": return true
    case "0", "false": return false
    default: throw OptionFault("1, true, 0 or false")
    }
  }

  /// Reads `count` whole numbers between separators.
  static func ints(
    _ text: String, _ separator: Character, _ count: Int, in range: ClosedRange<Int>
  ) throws(OptionFault) -> [Int] {
    let parts = text.split(separator: separator, omittingEmptySubsequences: false)
    guard parts.count == count else { throw OptionFault("\(count) numbers") }
    var numbers: [Int] = []
    for part in parts { numbers.append(try int(part, in: range)) }
    return numbers
  }

  /// The reader of whole numbers.
  static func whole(_ range: ClosedRange<Int>) -> ArgumentReader {
    { text throws(OptionFault) in "\(try int(text, in: range))" }
  }

  /// The reader of numbers, kept within Pictor's `limits`; `neutral` values change nothing.
  static func decimal(
    _ range: ClosedRange<Double>, within limits: ClosedRange<Double> = 0...10,
    neutral: Double...
  ) -> ArgumentReader {
    { text throws(OptionFault) in
      let number = try number(text, in: range)
      if neutral.contains(number) { return nil }
      return written(min(max(number, limits.lowerBound), limits.upperBound))
    }
  }

  /// The reader of degrees, which become 0 to below 360, in `steps` a degree.
  static func degrees(_ range: ClosedRange<Double>, steps: Double = 100) -> ArgumentReader {
    { text throws(OptionFault) in
      let degrees = (try number(text, in: range) * steps).rounded() / steps
      let rest = degrees.truncatingRemainder(dividingBy: 360)
      return rest == 0 ? nil : written(rest < 0 ? rest + 360 : rest)
    }
  }

  /// The reader of degrees that are quarter turns.
  static func quarters(_ range: ClosedRange<Double>) -> ArgumentReader {
    { text throws(OptionFault) in
      let degrees = try degrees(range)(text)
      guard degrees == nil || ["90", "180", "270"].contains(degrees) else {
        throw .unsupported("only by multiples of 90 degrees")
      }
      return degrees
    }
  }

  /// The reader of a flag that becomes `1`.
  static let flag: ArgumentReader = { text throws(OptionFault) in try isOn(text) ? "1" : nil }

  /// The reader of what only one text can be.
  static func always(_ value: String) -> ArgumentReader { { _ throws(OptionFault) in value } }

  /// The reader of names, which blanks separate: `name`, `name=other`, or `name=` if it changes
  /// nothing.
  static func choice(_ names: String) -> ArgumentReader {
    let pairs = names.split(separator: " ").map { name in
      let parts = name.split(separator: "=", omittingEmptySubsequences: false).map { String($0) }
      return (parts[0], parts[parts.count - 1])
    }
    let values = Dictionary(pairs) { first, _ in first }
    return { text throws(OptionFault) in
      guard let value = values[text] else {
        throw OptionFault("one of " + pairs.map(\.0).joined(separator: ", "))
      }
      return value.isEmpty ? nil : value
    }
  }

  /// The reader of a colour.
  static func color(_ read: @escaping @Sendable (String) -> String?) -> ArgumentReader {
    { text throws(OptionFault) in
      guard let color = read(text) else { throw OptionFault("a colour") }
      return color
    }
  }
}

extension StringProtocol {
  /// The text percent-decoded once; unchanged if it is not valid UTF-8 or has NUL.
  var percentDecoded: String { PercentEncoding.decode(utf8) ?? String(self) }

  /// The pairs of a query, decoded. `hasForms`: whether a plus is a space.
  func queryItems(hasForms: Bool = false) -> [(name: String, value: String)] {
    split(separator: "&").map { item in
      let text = hasForms ? String(item.map { $0 == "+" ? " " : $0 }) : String(item)
      let name = text.prefix { $0 != "=" }
      return (name.percentDecoded, text.dropFirst(name.count + 1).percentDecoded)
    }
  }

  /// The text as JSON has it, in quotation marks.
  var json: String {
    let escaped = unicodeScalars.map { scalar in
      switch scalar {
      case "\"", "\\": "\\\(scalar)"
      case _ where scalar.value < 0x20: "\\u" + scalar.value.hexadecimal(4)
      default: String(scalar)
      }
    }
    return "\"" + escaped.joined() + "\""
  }
}
