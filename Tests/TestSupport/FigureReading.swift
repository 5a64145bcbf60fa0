// FigureReading: figures compare with plain values, and `/stats` is read back.

import Core

extension Figure {
  /// The number, if it is one.
  public var number: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .real(let number): number
    default: nil
    }
  }

  /// The counts of a group by their label.
  public var counts: [String: Int] {
    if case .group(let values) = self { values.mapValues(\.whole) } else { [:] }
  }

  /// Whether it is a flag that is set.
  public var isSet: Bool { self == .flag(true) }

  /// Whether there is no such figure.
  public var isAbsent: Bool { self == .group([:]) }

  /// The figure of a group with a label, such as a status; an empty group if it is missing.
  public subscript(label: String) -> Figure {
    if case .group(let values) = self { values[label] ?? .group([:]) } else { .group([:]) }
  }

  /// Returns whether the figure has a value.
  public static func == (figure: Figure, value: some FigureValue) -> Bool {
    // As elements they are compared by their own equality, not by this function.
    figure.number.map { $0 == value.figure.number } ?? ([figure] == [value.figure])
  }

  /// Returns whether the figure has another value, or is absent.
  public static func != (figure: Figure, value: some FigureValue) -> Bool { !(figure == value) }

  /// Returns whether there is a number below a value.
  public static func < (figure: Figure, value: some FigureValue) -> Bool {
    compare(figure, value) { $0 < $1 }
  }

  /// Returns whether there is a number above a value.
  public static func > (figure: Figure, value: some FigureValue) -> Bool {
    compare(figure, value) { $0 > $1 }
  }

  /// Returns whether there is a number that is at most a value.
  public static func <= (figure: Figure, value: some FigureValue) -> Bool {
    compare(figure, value) { $0 <= $1 }
  }

  /// Returns whether there is a number that is at least a value.
  public static func >= (figure: Figure, value: some FigureValue) -> Bool {
    compare(figure, value) { $0 >= $1 }
  }

  /// Returns the sum of two whole numbers.
  public static func + (left: Figure, right: some FigureValue) -> Int {
    left.whole + right.figure.whole
  }

  /// Returns the difference of two whole numbers.
  public static func - (left: Figure, right: some FigureValue) -> Int {
    left.whole - right.figure.whole
  }

  private static func compare(
    _ figure: Figure, _ value: some FigureValue, _ isOrdered: (Double, Double) -> Bool
  ) -> Bool {
    guard let left = figure.number, let right = value.figure.number else { return false }
    return isOrdered(left, right)
  }
}

extension String: FigureValue {
  /// The text as a figure.
  public var figure: Figure { .text(self) }
}

extension Dictionary: FigureValue where Key == String, Value == Int {
  /// Counts by their label as a figure.
  public var figure: Figure { .group(mapValues { .integer($0) }) }
}

extension Figure: Decodable {
  /// Reads a value of `/stats`.
  public init(from decoder: any Decoder) throws {
    let value = try decoder.singleValueContainer()
    if let flag = try? value.decode(Bool.self) {
      self = .flag(flag)
    } else if let count = try? value.decode(Int.self) {
      self = .integer(count)
    } else if let number = try? value.decode(Double.self) {
      self = .real(number)
    } else if let text = try? value.decode(String.self) {
      self = .text(text)
    } else if let texts = try? value.decode([String].self) {
      self = .texts(texts)
    } else {
      self = .group(try value.decode([String: Figure].self))
    }
  }
}

extension Figures: Decodable, Equatable {
  /// Reads `/stats`.
  public init(from decoder: any Decoder) throws {
    self.init()
    values = try [String: Figure](from: decoder)
  }

  /// Returns whether two parts have the same values in `/stats`.
  public static func == (left: Figures, right: Figures) -> Bool { left.values == right.values }
}
