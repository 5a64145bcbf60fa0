// Base64URL: bytes as text for URLs.

/// base64url without padding (RFC 4648, section 5).
enum Base64URL {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  /// Returns the characters for `bytes`: 43 for 32 bytes.
  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count * 4 + 2) / 3)
    var bits = 0
    var count = 0
    for byte in bytes {
      bits = (bits << 8 | Int(byte)) & 0xffff
      count += 8
      while count >= 6 {
        count -= 6
        text.append(digits[bits >> count & 63])
      }
    }
    if count > 0 { text.append(digits[bits << (6 - count) & 63]) }
    return text
  }
}
