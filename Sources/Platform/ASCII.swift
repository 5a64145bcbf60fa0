// ASCII: classes of ASCII characters, as formats of the web name them.

extension UInt8 {
  /// Whether this is a digit, `0` to `9`.
  @inlinable public var isDigit: Bool { 0x30...0x39 ~= self }
  /// Whether this is a letter, `a` to `z` or `A` to `Z`.
  @inlinable public var isLetter: Bool { 0x61...0x7a ~= self | 0x20 }

  /// Whether this is a space or a tab.
  @inlinable public var isBlank: Bool { self == 0x20 || self == 0x09 }

  /// The value of a hexadecimal digit; `nil` for any other character.
  @inlinable public var hexadecimalValue: UInt8? {
    switch self {
    case 0x30...0x39: self - 0x30
    case 0x61...0x66: self - 0x61 + 10
    case 0x41...0x46: self - 0x41 + 10
    default: nil
    }
  }
}

extension BidirectionalCollection {
  /// Returns the part without the elements at both ends that match.
  @inlinable public func trimming(while matches: (Element) -> Bool) -> SubSequence {
    let rest = drop(while: matches)
    guard let last = rest.lastIndex(where: { !matches($0) }) else { return rest[endIndex...] }
    return rest[...last]
  }
}

extension Substring {
  /// The text without the spaces and tabs at both ends.
  public var trimmed: Substring { trimming { $0 == " " || $0 == "\t" } }
}

extension StringProtocol {
  /// Whether all characters are digits, `0` to `9`, and there is one.
  public var isDigits: Bool { !isEmpty && utf8.allSatisfy { $0.isDigit } }

  /// Whether all characters are ASCII letters, digits or among `others`. An empty text is plain.
  public func isPlain(with others: String = "-_") -> Bool {
    utf8.allSatisfy { $0.isLetter || $0.isDigit || others.utf8.contains($0) }
  }
}

extension [UInt8] {
  /// Reads pairs of hexadecimal digits; `nil` for anything else.
  public init?(hexadecimal text: String) {
    let digits = text.utf8.map(\.hexadecimalValue)
    guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
    self = stride(from: 0, to: digits.count, by: 2).map {
      (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0)
    }
  }
}

extension UInt64 {
  /// Reads hexadecimal digits in lower case, at most 16; `nil` for anything else.
  /// Does not allocate, unlike a generic function between files that are optimized one by one.
  public init?(lowerHexadecimal digits: Slice<UnsafeRawBufferPointer>) {
    self = 0
    for digit in digits {
      guard let value = digit.hexadecimalValue, !(0x41...0x46 ~= digit) else { return nil }
      self = self << 4 | UInt64(value)
    }
  }

  /// Returns the digit at a place of 0 to 15, in lower case. The highest is at 0.
  @inlinable public func hexadecimalDigit(at place: Int) -> UInt8 {
    let value = UInt8(self >> UInt64(60 - 4 * place) & 0xf)
    return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}

extension BinaryInteger {
  /// Returns the number in hexadecimal, in lower case, with leading zeros up to `width` digits.
  public func hexadecimal(_ width: Int) -> String {
    let digits = String(self, radix: 16)
    return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
  }
}
