// Transform: everything a request says about the picture it wants. Equal transforms make equal bytes.

/// How a picture is placed in the box of `w` and `h`; sharp's terms.
public enum Fit: String, CaseIterable, Sendable, Codable {
  /// As large as fits inside the box, aspect ratio kept.
  case inside
  /// As small as covers the box, aspect ratio kept, nothing cut.
  case outside
  /// Fills the box, aspect ratio kept, the rest cut off.
  case cover
  /// Fits inside the box and is padded to fill it.
  case contain
  /// Stretched to the box.
  case fill
}

/// Which part `cover` keeps, and where `contain` puts the picture.
public enum Position: String, CaseIterable, Sendable, Codable {
  /// The middle.
  case center
  /// The middle of the upper side.
  case top
  /// The upper right corner.
  case rightTop = "right-top"
  /// The middle of the right side.
  case right
  /// The lower right corner.
  case rightBottom = "right-bottom"
  /// The middle of the lower side.
  case bottom
  /// The lower left corner.
  case leftBottom = "left-bottom"
  /// The middle of the left side.
  case left
  /// The upper left corner.
  case leftTop = "left-top"
  /// The part with the most detail (libvips's `VIPS_INTERESTING_ENTROPY`); `center` for `contain`.
  case entropy
  /// The part most likely to draw the eye (libvips's `VIPS_INTERESTING_ATTENTION`); `center` for `contain`.
  case attention
}

/// An sRGB colour with straight alpha, 0–255 each.
public struct Color: Hashable, Sendable {
  /// Red, 0–255.
  public let red: UInt8
  /// Green, 0–255.
  public let green: UInt8
  /// Blue, 0–255.
  public let blue: UInt8
  /// Opacity, 0 (clear) to 255 (opaque).
  public let alpha: UInt8

  /// Opaque white: the default background.
  public static let white = Color(red: 255, green: 255, blue: 255)

  /// A colour from its components, 0–255 each.
  public init(red: UInt8, green: UInt8, blue: UInt8, alpha: UInt8 = 255) {
    (self.red, self.green, self.blue, self.alpha) = (red, green, blue, alpha)
  }

  /// Parses `rrggbb` or `rrggbbaa` in hexadecimal, without `#`; `nil` for anything else.
  public init?(hexadecimal text: some StringProtocol) {
    guard text.utf8.count == 6 || text.utf8.count == 8,
      text.utf8.allSatisfy({ ($0 as UInt8).isHexadecimalDigit }),
      let value = UInt32(text, radix: 16)
    else { return nil }
    let full = text.utf8.count == 6 ? value << 8 | 0xff : value
    self.init(
      red: UInt8(full >> 24), green: UInt8(full >> 16 & 0xff), blue: UInt8(full >> 8 & 0xff),
      alpha: UInt8(full & 0xff))
  }

  /// `rrggbbaa` in lower-case hexadecimal.
  public var hexadecimal: String {
    [red, green, blue, alpha].map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }
}

/// A size in pixels.
public struct PixelSize: Hashable, Sendable, Codable, CustomStringConvertible {
  /// Pixels from left to right.
  public let width: Int
  /// Pixels from top to bottom.
  public let height: Int

  /// A size of so many pixels.
  public init(width: Int, height: Int) {
    (self.width, self.height) = (width, height)
  }

  /// `5250x3450`.
  public var description: String { "\(width)x\(height)" }
}

/// What is to be made of a source: the `/image` parameters that change the result's bytes, with their defaults.
public struct Transform: Hashable, Sendable {
  /// Output pixels per image point, in (0, 10]; `nil`: the source's own density.
  public var scale: Double?
  /// Width of the box in points, at least 1.
  public var width: Int?
  /// Height of the box in points, at least 1.
  public var height: Int?
  /// How the picture is placed in the box.
  public var fit: Fit = .inside
  /// Which part `cover` keeps, where `contain` puts the picture.
  public var position: Position = .center
  /// Whether there may be more pixels than the source has.
  public var enlarge = false
  /// The output format; `nil`: alpha → PNG, animation → GIF, all other → JPEG.
  public var format: ImageFormat?
  /// Lossy quality, 1–100; `nil`: the format's default.
  public var quality: Int?
  /// Behind alpha where the output has none, and the padding of `contain`.
  public var background: Color = .white
  /// Decoded size in bytes, at 4 a pixel, above which the result is scaled down (SDWebImage's ScaleDownLargeImages).
  public var limitBytes = Transform.defaultLimitBytes
  /// The one frame wanted of an animation, from 0; `nil`: all of them.
  public var frame: Int?
  /// Whether the result is to draw while it arrives: interlaced, or the source's own bytes where they will do (SDWebImage's
  /// ProgressiveDownload).
  public var progressive = false

  /// 60 MiB, SDWebImage's default: 15,728,640 pixels.
  public static let defaultLimitBytes = 62_914_560
  /// The range of `scale`; its lower end is excluded.
  public static let scaleRange = 0.0...10.0
  /// The range of `w` and `h`, in points: libvips makes no picture with a longer side.
  public static let sideRange = 1...65_535
  /// The range of `quality`.
  public static let qualityRange = 1...100

  /// A transform that changes nothing but the orientation, the colour space and, where too large, the size.
  public init() {}

  /// The same text for all spellings of the same wish: parameters in a fixed order, defaults left out.
  ///
  /// It is part of the keys on disk: changing the text of an existing parameter orphans what is kept.
  public var canonicalText: String {
    var text = ""
    func add(_ name: String, _ value: String) {
      if !text.isEmpty { text += "&" }
      text += name + "=" + value
    }
    if let scale { add("scale", "\(scale)") }
    if let width { add("w", "\(width)") }
    if let height { add("h", "\(height)") }
    if fit != .inside { add("fit", fit.rawValue) }
    if position != .center { add("position", position.rawValue) }
    if enlarge { add("enlarge", "1") }
    if let format { add("format", format.rawValue) }
    if let quality, quality != format?.defaultQuality { add("quality", "\(quality)") }
    if background != .white { add("background", background.hexadecimal) }
    if limitBytes != Self.defaultLimitBytes { add("limitbytes", "\(limitBytes)") }
    if let frame { add("frame", "\(frame)") }
    if progressive { add("progressive", "1") }
    return text
  }
}

extension UInt8 {
  /// Whether this is the ASCII code of 0–9, a–f or A–F.
  fileprivate var isHexadecimalDigit: Bool {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }
}
