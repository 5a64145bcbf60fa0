// EntityTag: the entity tag of a variant (RFC 9110, section 8.8.3).

/// The strong validator of a variant, as it is sent: with its quotes.
///
/// The tag of a rendered image is a digest of 128 bits, which is stored without memory of its own.
/// Any other text is possible and stored as it is: the tag of a source that is passed through, or
/// what an entry on disk has. Tags are equal if their texts are.
public struct EntityTag: Hashable, Sendable, CustomStringConvertible {
  private enum Form: Hashable {
    /// 32 lower-case hexadecimal digits in quotes.
    case digest(UInt64, UInt64)
    /// Any other text.
    case text(String)
  }

  /// The length of a digest with its quotes, in bytes.
  private static let digestLength = 34

  private let form: Form

  /// Creates a tag from its text, quotes included.
  public init(_ text: String) {
    var text = text
    let digest = text.withUTF8 { Self.digest(UnsafeRawBufferPointer($0)) }
    form = digest ?? .text(text)
  }

  /// Creates a tag from the UTF-8 bytes of its text, quotes included.
  public init(utf8 bytes: UnsafeRawBufferPointer) {
    form = Self.digest(bytes) ?? .text(String(decoding: bytes, as: UTF8.self))
  }

  /// The text, quotes included.
  public var description: String { withUTF8 { String(decoding: $0, as: UTF8.self) } }

  /// The number of bytes that the text takes beside this value.
  public var heldBytes: Int {
    switch form {
    case .digest: 0
    case .text(let text): text.utf8.count
    }
  }

  /// Calls `body` with the bytes of the text, which are valid during the call. Allocates nothing.
  public func withUTF8<Result>(_ body: (UnsafeBufferPointer<UInt8>) throws -> Result) rethrows
    -> Result
  {
    switch form {
    case .text(var text): return try text.withUTF8(body)
    case .digest(let high, let low):
      return try withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Self.digestLength) {
        buffer in
        buffer.initialize(repeating: UInt8(ascii: "\""))
        for place in 0..<16 {
          buffer[1 + place] = high.hexadecimalDigit(at: place)
          buffer[17 + place] = low.hexadecimalDigit(at: place)
        }
        return try body(UnsafeBufferPointer(buffer))
      }
    }
  }

  /// Returns the digest that a text consists of, or `nil` for any other text.
  private static func digest(_ text: UnsafeRawBufferPointer) -> Form? {
    let quote = UInt8(ascii: "\"")
    guard text.count == digestLength, text[0] == quote, text[digestLength - 1] == quote,
      let high = UInt64(lowerHexadecimal: text[1..<17]),
      let low = UInt64(lowerHexadecimal: text[17..<33])
    else { return nil }
    return .digest(high, low)
  }
}
