// PercentEncoding: strict percent-encoding and decoding of request targets.

import Model

/// RFC 3986, section 2.1, one level of it.
enum PercentEncoding {
  /// Returns the decoded text. Returns `nil` if a `%` lacks two hexadecimal digits, or the result
  /// contains NUL or is not UTF-8.
  ///
  /// `+` stays a plus: only HTML forms encode a space as `+`, and a URL after `url=` may contain a
  /// literal plus.
  static func decode(_ bytes: some Collection<UInt8>) -> String? {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes.count) { decoded in
      var count = 0
      var rest = bytes.makeIterator()
      while var byte = rest.next() {
        if byte == UInt8(ascii: "%") {
          guard let high = rest.next().flatMap(hexadecimalDigit),
            let low = rest.next().flatMap(hexadecimalDigit)
          else { return nil }
          byte = high << 4 | low
        }
        guard byte != 0 else { return nil }
        decoded[count] = byte
        count += 1
      }
      return String(validating: UnsafeBufferPointer(rebasing: decoded[..<count]), as: UTF8.self)
    }
  }

  /// Encodes every byte except letters, digits and `-._~`, for `filename*` (RFC 8187).
  static func encode(_ text: String) -> String {
    var encoded = ""
    for byte in text.utf8 {
      let character = Character(UnicodeScalar(byte))
      if character.isASCII
        && (character.isLetter || character.isNumber || "-._~".contains(character))
      {
        encoded.append(character)
      } else {
        encoded += byte < 16 ? "%0" : "%"
        encoded += String(byte, radix: 16, uppercase: true)
      }
    }
    return encoded
  }

  private static func hexadecimalDigit(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
    default: nil
    }
  }
}

/// A client's text as it may be repeated in a message or a log line: short, without control characters and secrets.
func displayable(_ text: String, limit: Int = 100) -> String {
  // Masked before it is cut, since what tells a password may come behind it.
  let text = SecretMask.masked(text)
  var result = ""
  for scalar in text.unicodeScalars.prefix(limit) {
    if scalar.value < 0x20 || (0x7f..<0xa0).contains(scalar.value) {
      result += "\\u{\(String(scalar.value, radix: 16))}"
    } else {
      result.unicodeScalars.append(scalar)
    }
  }
  return text.unicodeScalars.count > limit ? result + "…" : result
}

/// Does the same for bytes that may not be valid text.
func displayable(_ bytes: some Collection<UInt8>, limit: Int = 100) -> String {
  displayable(
    String(decoding: bytes.prefix(2 * SourceURL.maximumLength), as: UTF8.self), limit: limit)
}
