// HeaderField: a field of a request's header, as configured or as a client sent it.

import FoundationEssentials

/// A header field whose value is nobody else's business: its description is its name alone, so that no log shows more.
public struct HeaderField: Hashable, Sendable, CustomStringConvertible {
  /// The field's name, a token of RFC 9110.
  public let name: String
  /// Its value, without control characters.
  public let value: String

  /// A field; `nil` where the name is no token (RFC 9110, section 5.6.2), or the value is empty, begins or ends with a
  /// blank, or holds a control character, with which it would forge further fields.
  public init?(_ name: String, _ value: String) {
    let blanks: Set<UInt8> = [0x20, 0x09]
    guard Self.isName(name), let first = value.utf8.first, let last = value.utf8.last,
      !blanks.contains(first), !blanks.contains(last),
      value.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 })
    else { return nil }
    (self.name, self.value) = (name, value)
  }

  /// `Authorization` with a user and a password (RFC 7617, in UTF-8); `nil` where the user holds a colon, or either a
  /// control character.
  public init?(user: String, password: String) {
    let pair = user + ":" + password
    guard !user.contains(":"), pair.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f }) else {
      return nil
    }
    self.init("Authorization", "Basic " + Data(pair.utf8).base64EncodedString())
  }

  /// `Authorization` with a bearer's token (RFC 6750, section 2.1); `nil` where it holds a blank or anything else that
  /// no token does.
  public init?(bearer token: String) {
    guard !token.isEmpty, token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f }) else { return nil }
    self.init("Authorization", "Bearer " + token)
  }

  /// Whether a text can be a field's name.
  public static func isName(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
      }
  }

  /// The name.
  public var description: String { name }
}
