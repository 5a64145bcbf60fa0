// HeaderField: a validated request header field.

import FoundationEssentials

/// A header field with a confidential value. Its description is its name alone, so logs never
/// contain the value.
public struct HeaderField: Hashable, Sendable, CustomStringConvertible {
  /// The name, a token (RFC 9110, section 5.6.2).
  public let name: String
  /// The value, without control characters.
  public let value: String

  /// Creates a field, or returns `nil` for invalid input.
  ///
  /// - The name must be a token (RFC 9110, section 5.6.2).
  /// - The value must not be empty, or start or end with a blank.
  /// - The value must not contain control characters, which could inject further fields.
  public init?(_ name: String, value: String) {
    let blanks: Set<UInt8> = [0x20, 0x09]
    guard Self.isName(name), let first = value.utf8.first, let last = value.utf8.last,
      !blanks.contains(first), !blanks.contains(last),
      value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 })
    else { return nil }
    self.name = name
    self.value = value
  }

  /// Creates an `Authorization` field with user and password (RFC 7617, in UTF-8). Returns `nil` if
  /// the user contains a colon, or either contains a control character.
  public init?(user: String, password: String) {
    let pair = user + ":" + password
    guard !user.contains(":"), pair.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
      return nil
    }
    self.init("Authorization", value: "Basic " + Data(pair.utf8).base64EncodedString())
  }

  /// Creates an `Authorization` field with a bearer token (RFC 6750, section 2.1). Returns `nil` if
  /// the token contains a blank or an invalid character.
  public init?(bearer token: String) {
    guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { return nil }
    self.init("Authorization", value: "Bearer " + token)
  }

  /// Returns whether a text is a valid field name.
  public static func isName(_ text: String) -> Bool {
    !text.isEmpty && text.isPlain(with: "!#$%&'*+-.^_`|~")
  }

  /// The name.
  public var description: String { name }
}
