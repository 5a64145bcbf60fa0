// CacheDirectives: splits a Cache-Control field into directives.

/// The directives of a `Cache-Control` field of a request or a response, in order (RFC 9111,
/// section 5.2): `name[=token|="quoted string"]`, separated by commas.
///
/// Malformed text is skipped up to the next comma. A directive may occur more than once.
public struct CacheDirectives: Sequence, IteratorProtocol {
  /// One directive.
  public struct Directive: Equatable, Sendable {
    /// The name in lower case.
    public let name: String
    /// The argument without quotes and escapes; `nil` if there is none.
    public let argument: String?

    /// The argument as delta-seconds (section 1.2.2), at most `Int.max`; `nil` unless all digits.
    public var seconds: Int? { argument.flatMap { CacheDirectives.seconds($0) } }
  }

  private var rest: Substring.UTF8View

  /// Reads one field value, or several joined by commas.
  public init(_ value: String) { rest = Substring(value).utf8 }

  /// Parses delta-seconds, at most `Int.max`. Returns `nil` unless the text consists of digits.
  public static func seconds(_ text: some StringProtocol) -> Int? {
    text.isDigits ? Int(text) ?? .max : nil
  }

  /// Returns the next directive; `nil` at the end.
  public mutating func next() -> Directive? {
    while true {
      skip { $0 == UInt8(ascii: ",") || $0.isBlank }
      guard !rest.isEmpty else { return nil }
      let name = take { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
      var argument: String?
      if rest.first == UInt8(ascii: "=") {
        rest.removeFirst()
        skip(while: \.isBlank)
        argument = quotedString()
        if argument == nil {
          let token = take { $0 != UInt8(ascii: ",") }
          argument = token.isEmpty ? nil : token
        }
      }
      _ = take { $0 != UInt8(ascii: ",") }
      if !name.isEmpty { return Directive(name: name.lowercased(), argument: argument) }
    }
  }

  private mutating func skip(while matches: (UInt8) -> Bool) {
    rest = rest.drop(while: matches)
  }

  /// Takes the text up to the first byte that does not match, without trailing white space.
  private mutating func take(while matches: (UInt8) -> Bool) -> String {
    let text = rest.prefix(while: matches)
    rest = rest[text.endIndex...]
    return String(decoding: text.trimming { $0.isBlank }, as: UTF8.self)
  }

  /// Takes a quoted string (RFC 9110, section 5.6.4). Returns `nil` and takes nothing if no string
  /// starts here or if it has no end. Directives after the next comma are then still read.
  private mutating func quotedString() -> String? {
    var text = rest
    guard text.popFirst() == UInt8(ascii: "\"") else { return nil }
    var bytes: [UInt8] = []
    while let byte = text.popFirst() {
      if byte == UInt8(ascii: "\"") {
        rest = text
        return String(decoding: bytes, as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\"), let escaped = text.popFirst() {
        bytes.append(escaped)
      } else {
        bytes.append(byte)
      }
    }
    return nil
  }
}
