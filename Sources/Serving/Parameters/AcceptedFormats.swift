// AcceptedFormats: the negotiable formats that a request's Accept fields name.

import CMicrohttpd
import Core
import Glibc

/// A subset of `ImageFormat.negotiable`. Clients with the same set share cache keys, so a request
/// target has at most eight.
///
/// Not an `OptionSet`: every hit creates sets, and unspecialized standard library code allocates
/// for them.
struct AcceptedFormats: Hashable, Sendable {
  /// One bit per format, in the order of `ImageFormat.negotiable`.
  let rawValue: UInt8

  init() { rawValue = 0 }

  /// Parses the value of an `Accept` field.
  init(accept text: String) {
    var scanner = AcceptScanner()
    Array(text.utf8).withUnsafeBytes { scanner.read($0) }
    self = scanner.formats
  }

  /// Parses all `Accept` fields of the current request. Does not allocate.
  init(on connection: OpaquePointer) {
    var scanner = AcceptScanner()
    withUnsafeMutablePointer(to: &scanner) { scanner in
      // Calls back before it returns, and retains nothing.
      _ = MHD_get_connection_values_n(
        connection, .HEADER_KIND,
        { context, _, name, nameLength, value, length in
          guard nameLength == 6, let context, let name, let value,
            AcceptScanner.isEqual(UnsafeRawBufferPointer(start: name, count: 6), "accept")
          else { return .YES }
          context.assumingMemoryBound(to: AcceptScanner.self).pointee
            .read(UnsafeRawBufferPointer(start: value, count: length))
          return .YES
        }, scanner)
    }
    self = scanner.formats
  }

  fileprivate init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Creates a set from the negotiable ones of `formats`; ignores the others.
  init(_ formats: [ImageFormat]) {
    rawValue = ImageFormat.negotiable.enumerated().reduce(0) {
      formats.contains($1.element) ? $0 | 1 << UInt8($1.offset) : $0
    }
  }

  var isEmpty: Bool { rawValue == 0 }

  func contains(_ format: ImageFormat) -> Bool {
    rawValue & AcceptedFormats([format]).rawValue != 0
  }

  func intersection(_ other: AcceptedFormats) -> AcceptedFormats {
    AcceptedFormats(rawValue: rawValue & other.rawValue)
  }
}

/// Parses `Accept` fields (RFC 9110, section 12.5.1).
///
/// - Only formats that are named count, because browsers send `image/*` and `*/*` regardless of
///   support.
/// - JPEG, PNG and GIF are ignored: every client is assumed to support them.
/// - A weight above 0 accepts a format and 0 refuses it. The configured order decides among
///   accepted formats.
/// - Invalid elements are ignored.
struct AcceptScanner {
  /// The formats that were named, in the bits of `AcceptedFormats`.
  private var named = UInt8(0)
  /// The formats that were refused, in the same bits.
  private var refused = UInt8(0)

  var formats: AcceptedFormats { AcceptedFormats(rawValue: named & ~refused) }

  /// Parses one field value. Several fields form one list (RFC 9110, section 5.3).
  mutating func read(_ line: UnsafeRawBufferPointer) {
    var position = 0
    while position < line.count {
      let bit = Self.bit(Self.part(of: line, from: &position))
      var weight: Int? = 1_000
      while position < line.count, line[position] == UInt8(ascii: ";") {
        position += 1
        let parameter = Self.part(of: line, from: &position)
        guard parameter.count >= 2, parameter[0] | 0x20 == UInt8(ascii: "q"),
          parameter[1] == UInt8(ascii: "=")
        else { continue }
        weight = thousandths(UnsafeRawBufferPointer(rebasing: parameter.dropFirst(2)))
      }
      // Skips the comma, or moves past the end.
      position += 1
      guard let weight else { continue }
      if weight > 0 { named |= bit } else { refused |= bit }
    }
  }

  /// Returns the text up to the next `;` or `,` outside quotes, without surrounding blanks. Moves
  /// `position` to that delimiter, or to the end.
  private static func part(
    of line: UnsafeRawBufferPointer, from position: inout Int
  ) -> UnsafeRawBufferPointer {
    guard let bytes = line.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return line }
    let count = line.count
    var first = position
    var end = position
    var isQuoted = false
    while end < count {
      // Unchecked access and arithmetic, because the checks would dominate the cost. `end` stays
      // below `count`.
      let byte = bytes[end]
      // Fast path: above `;` only the backslash has a meaning, and only inside quotes.
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

  /// The media types of the bits, in the order of `ImageFormat.negotiable`.
  private static let mediaTypes = ImageFormat.negotiable.map { Array($0.mediaType.utf8) }

  /// Returns the bit of a media range, or 0 for other ranges.
  private static func bit(_ range: UnsafeRawBufferPointer) -> UInt8 {
    for place in 0..<mediaTypes.count where isEqual(range, mediaTypes[place]) {
      return 1 << UInt8(place)
    }
    return 0
  }

  /// Whether a range is a media type in lower case. A `String` as C's argument would be copied.
  private static func isEqual(_ range: UnsafeRawBufferPointer, _ type: [UInt8]) -> Bool {
    guard range.count == type.count else { return false }
    for place in 0..<type.count where Byte.lowercased(range[place]) != type[place] { return false }
    return true
  }

  /// Returns whether two ASCII texts are equal, ignoring case.
  static func isEqual(_ bytes: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    guard bytes.count == name.utf8CodeUnitCount, let start = bytes.baseAddress else { return false }
    return strncasecmp(
      start.assumingMemoryBound(to: CChar.self),
      UnsafeRawPointer(name.utf8Start).assumingMemoryBound(to: CChar.self), bytes.count) == 0
  }
}
