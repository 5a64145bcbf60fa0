// ParameterValues: parses parameter values, and describes allowed values for error messages.

import Model

extension ImageParameter {
  // MARK: What is allowed, as error messages say it

  static func text(_ range: ClosedRange<Int>) -> String {
    "a whole number from \(range.lowerBound) to \(range.upperBound)"
  }

  static func text(_ range: ClosedRange<Double>) -> String {
    "a number from \(range.lowerBound) to \(range.upperBound)"
  }

  // MARK: Values

  /// Assigns a parsed value. Returns `false` if it is `nil`.
  static func choose<Value>(_ value: Value?, for place: inout Value) -> Bool {
    guard let value else { return false }
    place = value
    return true
  }

  static func tiers(_ text: String) -> StoreTiers? {
    switch text {
    case "all": .all
    case "memory": .memory
    case "disk": .disk
    case "none": []
    default: nil
    }
  }

  static func flag(_ text: String) -> Bool? {
    switch text {
    case "0": false
    case "1": true
    default: nil
    }
  }

  /// Parses digits only: no sign, blank or exponent.
  static func whole(_ text: String, in range: ClosedRange<Int>) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy(isDigit), let value = Int(text),
      range.contains(value)
    else { return nil }
    return value
  }

  /// Parses digits with an optional fraction; the digits before the point may be missing. Allows 20
  /// characters, which exceeds the precision of a `Double`.
  static func decimal(_ text: String) -> Double? {
    let parts = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    guard text.utf8.count <= 20, (1...2).contains(parts.count), parts.last?.isEmpty == false,
      parts.allSatisfy({ $0.allSatisfy(isDigit) })
    else { return nil }
    return Double(text)
  }

  static func decimal(_ text: String, in range: ClosedRange<Double>) -> Double? {
    decimal(text).flatMap { range.contains($0) ? $0 : nil }
  }

  private static func parts(_ text: String, count: Int) -> [String]? {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    return parts.count == count ? parts : nil
  }

  static func focalPoint(_ text: String) -> FocalPoint? {
    guard let numbers = parts(text, count: 2)?.compactMap({ decimal($0, in: 0...1) }),
      numbers.count == 2
    else { return nil }
    return FocalPoint(x: numbers[0], y: numbers[1])
  }

  static func area(_ text: String) -> PixelArea? {
    guard
      let numbers = parts(text, count: 4)?.compactMap({ whole($0, in: Selection.cropRange) }),
      numbers.count == 4, numbers[2] > 0, numbers[3] > 0
    else { return nil }
    return PixelArea(
      x: numbers[0], y: numbers[1], size: PixelSize(width: numbers[2], height: numbers[3]))
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
  }
}
