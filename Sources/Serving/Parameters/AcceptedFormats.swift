// AcceptedFormats: what the Accept fields of a request come to: a set of the formats that have to be named.

import Glibc
import Model

/// A set of `ImageFormat.negotiable`: the class of a client. There are eight of them, so a target has at most eight keys,
/// however many ways there are to write `Accept`.
///
/// No `OptionSet`: each hit makes some, and what the standard library does with those allocates where it is not specialized.
struct AcceptedFormats: Hashable, Sendable {
  /// A bit each, in the order of `ImageFormat.negotiable`.
  let rawValue: UInt8

  /// None.
  init() { rawValue = 0 }

  fileprivate init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Formats; those that are not negotiated are passed over.
  init(_ formats: [ImageFormat]) {
    rawValue = ImageFormat.negotiable.enumerated().reduce(0) {
      formats.contains($1.element) ? $0 | 1 << UInt8($1.offset) : $0
    }
  }

  /// How many classes there are.
  static let classCount = 1 << ImageFormat.negotiable.count

  /// Whether there is none.
  var isEmpty: Bool { rawValue == 0 }

  /// Whether `format` is one of them.
  func contains(_ format: ImageFormat) -> Bool {
    rawValue & AcceptedFormats([format]).rawValue != 0
  }

  /// Those that are in both.
  func intersection(_ other: AcceptedFormats) -> AcceptedFormats {
    AcceptedFormats(rawValue: rawValue & other.rawValue)
  }
}

/// Reads `Accept` fields (RFC 9110, section 12.5.1); one that reads nothing has found nothing.
///
/// Only what is named counts: browsers send `image/*` and `*/*` whatever they can show. Everybody is taken to show JPEG,
/// PNG and GIF, so what is said of those is not heard. A weight above 0 says yes and one of 0 says no, whatever else
/// does: which of those named is the best is for the operator, who knows what they cost. What is not understood names
/// nothing.
struct AcceptScanner {
  /// Bits as in `AcceptedFormats`.
  private var (named, refused) = (UInt8(0), UInt8(0))

  /// What was named and not refused.
  var formats: AcceptedFormats { AcceptedFormats(rawValue: named & ~refused) }

  /// Nothing was read yet.
  init() {}

  /// Takes in what another one read: lines are one list (RFC 9110, section 5.3).
  mutating func add(_ other: AcceptScanner) {
    named |= other.named
    refused |= other.refused
  }

  /// Takes in one line.
  mutating func read(_ line: UnsafeRawBufferPointer) {
    var position = 0
    while position < line.count {
      let bit = Self.bit(Self.part(of: line, from: &position))
      var weight = Weight.positive
      while position < line.count, line[position] == UInt8(ascii: ";") {
        position += 1
        if let found = Self.weight(Self.part(of: line, from: &position)) { weight = found }
      }
      // The comma, or beyond the end.
      position += 1
      switch weight {
      case .positive: named |= bit
      case .zero: refused |= bit
      case .unknown: break
      }
    }
  }

  /// What a media range's `q` says.
  private enum Weight {
    /// More than 0, or there is no `q`.
    case positive
    /// 0.
    case zero
    /// It is no weight.
    case unknown
  }

  /// The text up to the next `;` or `,` that stands in no quotes, without the blanks around it.
  private static func part(
    of line: UnsafeRawBufferPointer, from position: inout Int
  ) -> UnsafeRawBufferPointer {
    guard let bytes = line.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return line }
    let count = line.count
    var (first, end) = (position, position)
    var isQuoted = false
    while end < count {
      // By address and without checks of overflow, which would be most of the work; it stays below `count`.
      let byte = bytes[end]
      // Nearly all are letters: no sign above them but the backslash, which means something in quotes alone.
      if byte > UInt8(ascii: ";"), !isQuoted {
        end &+= 1
        continue
      }
      if isQuoted, byte == UInt8(ascii: "\\") {
        end += 1
      } else if byte == UInt8(ascii: "\"") {
        isQuoted.toggle()
      } else if !isQuoted, byte == UInt8(ascii: ";") || byte == UInt8(ascii: ",") {
        break
      }
      end += 1
    }
    end = min(end, count)
    position = end
    while first < end, isBlank(bytes[first]) { first &+= 1 }
    while end > first, isBlank(bytes[end - 1]) { end &-= 1 }
    return UnsafeRawBufferPointer(start: bytes + first, count: end - first)
  }

  private static func isBlank(_ byte: UInt8) -> Bool {
    byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t")
  }

  /// The bit of a media range; 0 where it is of no interest. In the order of `ImageFormat.negotiable`.
  private static func bit(_ range: UnsafeRawBufferPointer) -> UInt8 {
    isEqual(range, "image/avif")
      ? 1 : isEqual(range, "image/webp") ? 2 : isEqual(range, "image/jxl") ? 4 : 0
  }

  /// The weight that a parameter is (RFC 9110, section 12.4.2); `nil` for any other parameter.
  private static func weight(_ parameter: UnsafeRawBufferPointer) -> Weight? {
    guard parameter.count >= 2, parameter[0] | 0x20 == UInt8(ascii: "q"),
      parameter[1] == UInt8(ascii: "=")
    else { return nil }
    let zero = UInt8(ascii: "0")
    // A digit, a point, three digits.
    guard (3...7).contains(parameter.count), parameter[2] == zero || parameter[2] == zero + 1,
      parameter.count == 3 || parameter[3] == UInt8(ascii: ".")
    else { return .unknown }
    let isOne = parameter[2] != zero
    var isZero = !isOne
    for position in stride(from: 4, to: parameter.count, by: 1) {
      guard (zero...zero + (isOne ? 0 : 9)).contains(parameter[position]) else { return .unknown }
      isZero = isZero && parameter[position] == zero
    }
    return isZero ? .zero : .positive
  }

  /// Whether both are the same but for letter case.
  static func isEqual(_ bytes: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount, let start = bytes.baseAddress else { return false }
    return strncasecmp(
      start.assumingMemoryBound(to: CChar.self),
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self), bytes.count) == 0
  }
}
