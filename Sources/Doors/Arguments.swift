// Arguments: reads the arguments of peers' options: bounded numbers, flags, choices, queries.

import Core

/// The arguments of an option.
struct Arguments: Sendable {
  let texts: [String]

  /// How many there are, empty ones included.
  var count: Int { texts.count }

  /// Returns an argument; empty if it is absent.
  subscript(index: Int) -> String { index < texts.count ? texts[index] : "" }

  /// Returns an argument; `nil` if it is absent or empty.
  func text(_ index: Int) -> String? { self[index].isEmpty ? nil : self[index] }

  /// Reads a whole number without a plus; `nil` if it is absent or empty.
  func whole(_ index: Int, _ range: ClosedRange<Int>) throws(DoorFault) -> Int? {
    try read(index) { text throws(DoorFault) in try text.whole(in: range) }
  }

  /// Reads a number without a plus; `nil` if it is absent or empty.
  func number(_ index: Int, _ range: ClosedRange<Double>) throws(DoorFault) -> Double? {
    try read(index) { text throws(DoorFault) in try text.number(in: range) }
  }

  private func read<Value>(
    _ index: Int, _ value: (String) throws(DoorFault) -> Value
  ) throws(DoorFault) -> Value? {
    guard let text = text(index) else { return nil }
    do {
      return try value(text.hasPrefix("+") ? "" : text)
    } catch { throw .invalid("'\(text.prefix(32))' is not " + error.reason) }
  }
}

/// A way to read an argument.
struct Reader<Value>: Sendable {
  let read: @Sendable (_ text: String) throws(DoorFault) -> Value

  init(_ read: @escaping @Sendable (_ text: String) throws(DoorFault) -> Value) {
    self.read = read
  }
}

extension Reader {
  /// What any text stands for.
  static func always(_ value: Value) -> Reader where Value: Sendable { Reader { _ in value } }

  static func whole(_ range: ClosedRange<Int>) -> Reader where Value == Int? {
    Reader { text throws(DoorFault) in try text.whole(in: range) }
  }

  static func number(_ range: ClosedRange<Double>) -> Reader where Value == Double? {
    Reader { text throws(DoorFault) in try text.number(in: range) }
  }
}

extension Reader<Bool> {
  /// A flag. Without a value it is on.
  static let flag = Reader { text throws(DoorFault) in
    let values = ["": true, "1": true, "true": true, "0": false, "false": false]
    if let value = values[text] { return value }
    throw .invalid("1, true, 0 or false")
  }
}

/// Readers of values of Pictor's query; `nil`: nothing is asked for.
extension Reader<String?> {
  static let side = whole(Sizing.sideRange)

  /// A flag that becomes `1`.
  static let flag = Reader { text throws(DoorFault) in
    try Reader<Bool>.flag.read(text) ? "1" : nil
  }

  static let text = Reader { $0 }

  static func whole(_ range: ClosedRange<Int>) -> Reader {
    Reader { text throws(DoorFault) in "\(try text.whole(in: range))" }
  }

  /// A number, kept within Pictor's `limits`; `neutral` values change nothing.
  static func number(
    _ range: ClosedRange<Double>, within limits: ClosedRange<Double> = 0...10,
    neutral: Double...
  ) -> Reader {
    Reader { text throws(DoorFault) in
      let number = try text.number(in: range)
      return neutral.contains(number) ? nil : number.clamped(to: limits).written
    }
  }

  /// Degrees, which become whole ones from 0 to 359.
  static func degrees(_ range: ClosedRange<Double>) -> Reader {
    Reader { text throws(DoorFault) in
      let degrees = Int(try text.number(in: range).rounded()).turned
      return degrees == 0 ? nil : "\(degrees)"
    }
  }

  /// Degrees that are quarter turns.
  static func quarters(_ range: ClosedRange<Double>) -> Reader {
    Reader { text throws(DoorFault) in
      let degrees = (try text.number(in: range) * 100).rounded() / 100
      guard degrees.truncatingRemainder(dividingBy: 90) == 0 else {
        throw .unsupported("only by multiples of 90 degrees")
      }
      return try Self.degrees(range).read(text)
    }
  }

  /// One of the names between blanks: `name`, `name=other`, or `name=` if it changes nothing.
  static func choice(_ names: String) -> Reader {
    let pairs = names.split(separator: " ").map { name in
      let parts = name.split(separator: "=", omittingEmptySubsequences: false).map { String($0) }
      return (parts[0], parts[parts.count - 1])
    }
    let values = Dictionary(pairs) { first, _ in first }
    return Reader { text throws(DoorFault) in
      guard let value = values[text] else {
        throw .invalid("one of " + pairs.map(\.0).joined(separator: ", "))
      }
      return value.isEmpty ? nil : value
    }
  }

  /// A gamma as sharp has it; 2.2 without a value.
  static let gamma = Reader { text throws(DoorFault) in
    text.isEmpty ? "2.2" : try text.number(in: 1...3).written
  }

  static func color(_ read: @escaping @Sendable (String) -> String?) -> Reader {
    Reader { text throws(DoorFault) in
      guard let color = read(text) else { throw .invalid("a colour") }
      return color
    }
  }

  /// A colour that lies half transparent on the image.
  static func tint(_ read: @escaping @Sendable (String) -> String?) -> Reader {
    Reader { text throws(DoorFault) in try color(read).read(text).map { $0.prefix(6) + "80" } }
  }
}

extension StringProtocol {
  /// Reads digits with an optional sign.
  func whole(in range: ClosedRange<Int>) throws(DoorFault) -> Int {
    let digits = hasPrefix("-") || hasPrefix("+") ? dropFirst() : self[...]
    guard digits.isDigits, digits.utf8.count <= 15, let number = Int(self), range.contains(number)
    else {
      throw .invalid(AllowedValues.text(range))
    }
    return number
  }

  /// Reads digits with an optional sign and an optional fraction, at most 20 characters.
  func number(in range: ClosedRange<Double>) throws(DoorFault) -> Double {
    let digits = hasPrefix("-") || hasPrefix("+") ? dropFirst() : self[...]
    let parts = digits.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard digits.utf8.count <= 20, parts.count <= 2, parts.contains(where: { !$0.isEmpty }),
      parts.allSatisfy({ $0.allSatisfy(\.isDigit) }),
      let size = Double(parts.count == 1 ? String(digits) : "0" + digits + "0"),
      range.contains(hasPrefix("-") ? -size : size)
    else {
      throw .invalid("a number from \(range.lowerBound.written) to \(range.upperBound.written)")
    }
    return hasPrefix("-") ? -size : size
  }

  /// Reads `count` whole numbers between separators.
  func wholes(
    _ count: Int, between separator: Character, in range: ClosedRange<Int>
  ) throws(DoorFault) -> [Int] {
    let parts = split(separator: separator, omittingEmptySubsequences: false)
    guard parts.count == count else { throw .invalid("\(count) numbers") }
    return try parts.map { part throws(DoorFault) in try part.whole(in: range) }
  }

  /// What stands before and after the first slash; `nil` without one.
  var cutAtSlash: (head: SubSequence, tail: SubSequence)? {
    // By bytes: a slash and a combining mark after it are one `Character`.
    guard let slash = utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    return (self[..<slash], self[utf8.index(after: slash)...])
  }

  /// The parts between commas, but not in parentheses.
  var commaParts: [Substring] {
    var depth = 0
    return Substring(self).utf8.split(omittingEmptySubsequences: false) { byte in
      if byte == UInt8(ascii: "(") { depth += 1 }
      if byte == UInt8(ascii: ")") { depth -= 1 }
      return byte == UInt8(ascii: ",") && depth <= 0
    }.map { Substring($0) }
  }

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
      if scalar.value < 0x20 { return "\\u" + scalar.value.hexadecimal(4) }
      return (scalar == "\"" || scalar == "\\" ? "\\" : "") + String(scalar)
    }
    return "\"" + escaped.joined() + "\""
  }
}

extension Int {
  /// The degrees as 0 to 359.
  var turned: Int { (self % 360 + 360) % 360 }
}

extension Double {
  /// The number as Pictor reads it: at most six decimals, no exponent, no negative zero.
  var written: String {
    let bounded = clamped(to: -1e12...1e12)
    let units = Int((abs(bounded) * 1_000_000).rounded())
    let decimals = String(units % 1_000_000 + 1_000_000).dropFirst().reversed().drop { $0 == "0" }
    let text = decimals.isEmpty ? "" : "." + String(decimals.reversed())
    return (bounded < 0 && units > 0 ? "-" : "") + "\(units / 1_000_000)" + text
  }

  /// The number as Pictor reads a share: with a point.
  var share: String { written.contains(".") ? written : written + ".0" }
}

extension Comparable {
  /// Returns the nearest value in a range.
  func clamped(to range: ClosedRange<Self>) -> Self {
    min(max(self, range.lowerBound), range.upperBound)
  }
}
