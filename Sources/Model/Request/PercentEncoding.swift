// PercentEncoding: percent-encoding and decoding of text in URLs.

/// One level of percent-encoding (RFC 3986, section 2.1).
public enum PercentEncoding {
  /// Returns the decoded text. Returns `nil` if a `%` lacks two hexadecimal digits, or the result
  /// contains NUL or is not UTF-8.
  ///
  /// `+` stays a plus: only HTML forms encode a space as `+`, and a URL after `url=` may contain a
  /// literal plus.
  @inlinable
  public static func decode(_ bytes: some Collection<UInt8>) -> String? {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: bytes.count) { decoded in
      var count = 0
      var rest = bytes.makeIterator()
      while var byte = rest.next() {
        if byte == UInt8(ascii: "%") {
          guard let high = rest.next().flatMap(\.hexadecimalValue),
            let low = rest.next().flatMap(\.hexadecimalValue)
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

  /// Returns the decoded bytes. A `%` without two hexadecimal digits stays, as at most origins.
  public static func decodeLeniently(_ text: some Collection<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    var rest = Array(text)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let high = rest.first.flatMap(\.hexadecimalValue),
        let low = rest.dropFirst().first.flatMap(\.hexadecimalValue)
      {
        bytes.append(high << 4 | low)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return bytes
  }

  /// Encodes a path: every byte except the unreserved characters and `/`.
  public static func encodePath(_ path: String) -> String {
    // By bytes: a slash and a combining mark after it are one `Character`.
    path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { encode(String(decoding: $0, as: UTF8.self)) }.joined(separator: "/")
  }

  /// Encodes every byte except the unreserved characters: letters, digits and `-._~` (section 2.3).
  public static func encode(_ text: String) -> String {
    let digits = Array("0123456789ABCDEF".utf8)
    var encoded: [UInt8] = []
    encoded.reserveCapacity(text.utf8.count)
    for byte in text.utf8 {
      if byte.isLetter || byte.isDigit || "-._~".utf8.contains(byte) {
        encoded.append(byte)
      } else {
        encoded += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: encoded, as: UTF8.self)
  }
}
