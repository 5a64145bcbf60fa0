// Color: an sRGB colour from a request.

/// An sRGB colour with straight alpha. Components are 0–255.
public struct Color: Hashable, Sendable {
  /// Red, 0–255.
  public let red: UInt8
  /// Green, 0–255.
  public let green: UInt8
  /// Blue, 0–255.
  public let blue: UInt8
  /// Opacity, 0 (transparent) to 255 (opaque).
  public let alpha: UInt8

  /// Opaque white, the default background.
  public static let white = Color(red: 255, green: 255, blue: 255)

  /// Creates a colour from its components, 0–255 each.
  public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
    self.red = red
    self.green = green
    self.blue = blue
    self.alpha = alpha
  }

  /// Parses `rrggbb`, `rrggbbaa`, or `rgb` with doubled digits (CSS Color 4, section 5.2), in
  /// hexadecimal, without `#`. Returns `nil` for anything else.
  public init?(hexadecimal given: some StringProtocol) {
    let text = given.utf8.count == 3 ? given.map { "\($0)\($0)" }.joined() : String(given)
    guard text.utf8.count == 6 || text.utf8.count == 8,
      text.utf8.allSatisfy({ $0.hexadecimalValue != nil }),
      let value = UInt32(text, radix: 16)
    else { return nil }
    let full = text.utf8.count == 6 ? value << 8 | 0xff : value
    self.init(
      red: UInt8(full >> 24), green: UInt8(full >> 16 & 0xff), blue: UInt8(full >> 8 & 0xff),
      alpha: UInt8(full & 0xff))
  }

  /// `rrggbbaa` in lower-case hexadecimal.
  public var hexadecimal: String {
    [red, green, blue, alpha].map { $0.hexadecimal(2) }.joined()
  }
}
