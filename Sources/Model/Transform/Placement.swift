// Placement: how an image lies in its box.

/// How an image is placed in the box of `w` and `h`; sharp's terms.
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

/// A named place: which part `cover` keeps, and where `contain` puts the image.
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

/// The point of an image that matters most, which `cover` keeps as near to the middle as the image's edges let it.
/// Shares of the upright image's width and height, 0–1 each, from the left and the top, after `crop`.
public struct FocalPoint: Hashable, Sendable {
  /// From the left, 0–1.
  public let x: Double
  /// From the top, 0–1.
  public let y: Double

  /// A point.
  public init(x: Double, y: Double) { (self.x, self.y) = (x, y) }
}

/// A turn clockwise, on top of the EXIF orientation.
public enum Rotation: Int, CaseIterable, Sendable {
  /// None.
  case none = 0
  /// A quarter clockwise.
  case quarter = 90
  /// Upside down.
  case half = 180
  /// A quarter counter-clockwise.
  case threeQuarters = 270

  /// Whether width and height are exchanged.
  public var swapsSides: Bool { self == .quarter || self == .threeQuarters }
}

/// A mirroring, after the rotation (SDImageFlippingTransformer).
public enum Flip: String, CaseIterable, Sendable {
  /// None.
  case none
  /// Left and right exchanged.
  case horizontal = "h"
  /// Top and bottom exchanged.
  case vertical = "v"
  /// Both.
  case both = "hv"
}
