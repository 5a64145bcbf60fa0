// Placement: how an image is placed in its box, with rotation and flip.

/// How an image is placed in the box of `w` and `h`, in the terms of sharp.
public enum Fit: String, CaseIterable, Sendable, Codable {
  /// Scales the image to fit inside the box, keeping its aspect ratio.
  case inside
  /// Scales the image to cover the box, keeping its aspect ratio, without cropping.
  case outside
  /// Scales the image to cover the box, keeping its aspect ratio, and crops the rest.
  case cover
  /// Scales the image to fit inside the box and pads it to the box.
  case contain
  /// Stretches the image to the box.
  case fill
}

/// A named position: which part `cover` keeps, and where `contain` places the image.
public enum Position: String, CaseIterable, Sendable, Codable {
  /// The centre.
  case center
  /// The middle of the top edge.
  case top
  /// The top right corner.
  case rightTop = "right-top"
  /// The middle of the right edge.
  case right
  /// The bottom right corner.
  case rightBottom = "right-bottom"
  /// The middle of the bottom edge.
  case bottom
  /// The bottom left corner.
  case leftBottom = "left-bottom"
  /// The middle of the left edge.
  case left
  /// The top left corner.
  case leftTop = "left-top"
  /// The region with the most detail (libvips's `VIPS_INTERESTING_ENTROPY`); `center` for
  /// `contain`.
  case entropy
  /// The region most likely to attract attention (libvips's `VIPS_INTERESTING_ATTENTION`); `center`
  /// for `contain`.
  case attention
}

/// The focal point of an image, which `cover` keeps as close to the centre as possible.
///
/// Coordinates are fractions (0–1) of the upright image's width and height, from the top left,
/// after `crop`.
public struct FocalPoint: Hashable, Sendable {
  /// The horizontal fraction, 0–1.
  public let x: Double
  /// The vertical fraction, 0–1.
  public let y: Double

  /// Creates a focal point.
  public init(x: Double, y: Double) { (self.x, self.y) = (x, y) }
}

/// A clockwise rotation in degrees, after the EXIF orientation is applied.
public enum Rotation: Int, CaseIterable, Sendable {
  /// No rotation.
  case none = 0
  /// 90° clockwise.
  case quarter = 90
  /// 180°.
  case half = 180
  /// 270° clockwise.
  case threeQuarters = 270

  /// Whether the rotation swaps width and height.
  public var swapsSides: Bool { self == .quarter || self == .threeQuarters }
}

/// A mirroring, after the rotation (SDImageFlippingTransformer).
public enum Flip: String, CaseIterable, Sendable {
  /// No mirroring.
  case none
  /// Swaps left and right.
  case horizontal = "h"
  /// Swaps top and bottom.
  case vertical = "v"
  /// Swaps both.
  case both = "hv"
}
