// Placement: how an image is placed in its box, with rotation and flip.

/// How an image is placed in the box of `w` and `h`, in the terms of sharp.
///
/// Without `enlarge`, no side of the image grows. With only `w` or only `h`, nothing is cropped or
/// padded: `fill` scales that side alone, all others keep the aspect ratio. See `Geometry`.
public enum Fit: String, CaseIterable, Sendable, Codable {
  /// Scales the image to fit inside the box, keeping its aspect ratio.
  case inside
  /// Scales the image to cover the box, keeping its aspect ratio, without cropping.
  case outside
  /// Scales the image to cover the box, keeping its aspect ratio, and crops what exceeds the box.
  case cover
  /// As `cover`; a source that is too small is cropped to the aspect ratio of the box instead
  /// (imgproxy's `fill-down`, Cloudflare's `aspect-crop`).
  case coverDown = "cover-down"
  /// `cover` if image and box are both wider than high, or both higher than wide; else `inside`
  /// (imgproxy's `auto`). Squares count as wide.
  case auto
  /// Scales the image to fit inside the box and pads it to the box.
  case contain
  /// Stretches the image to the box.
  case fill
}

/// A named position: which part `cover` keeps, where `contain` places the image, and where a
/// watermark lies. Smart positions choose only for `cover`; elsewhere they mean `center`.
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
  /// The region with the most detail (libvips's `VIPS_INTERESTING_ENTROPY`).
  case entropy
  /// The region most likely to attract attention (libvips's `VIPS_INTERESTING_ATTENTION`).
  case attention
  /// Frontal faces, as many as fit, the largest first; `attention` for an image without one.
  case faces

  /// All positions that do not depend on what the image shows.
  public static let plain = allCases.filter { !$0.isSmart }
  /// Whether what the image shows decides.
  public var isSmart: Bool { self == .entropy || self == .attention || self == .faces }
}

extension Position {
  /// How much of the space around the image lies to its left and above it, in halves: 0, 1 or 2. If
  /// the image exceeds the canvas, how much of the excess. Smart positions count as 1.
  public var anchor: (x: Int, y: Int) {
    switch self {
    case .center, .entropy, .attention, .faces: (1, 1)
    case .top: (1, 0)
    case .rightTop: (2, 0)
    case .right: (2, 1)
    case .rightBottom: (2, 2)
    case .bottom: (1, 2)
    case .leftBottom: (0, 2)
    case .left: (0, 1)
    case .leftTop: (0, 0)
    }
  }
}

/// The focal point of an image. `cover` keeps it as close to the centre as the edges allow;
/// `contain` puts its fractions of the free space to the left of the image and above it.
///
/// Coordinates are fractions (0–1) of the width and height that remain after rotation, flip, `crop`
/// and `trim`, or their pixels, from the top left. The parsers check the range.
public struct FocalPoint: Hashable, Sendable {
  /// The horizontal fraction, 0–1, or pixels.
  public let x: Double
  /// The vertical fraction, 0–1, or pixels.
  public let y: Double
  /// Whether the coordinates are whole pixels of the source.
  public let isInPixels: Bool

  /// Creates a focal point.
  public init(x: Double, y: Double, isInPixels: Bool = false) {
    self.x = x
    self.y = y
    self.isInPixels = isInPixels
  }

  /// Returns the point in fractions of an image; one outside lies on its edge.
  func inShares(of size: PixelSize) -> FocalPoint {
    guard isInPixels else { return self }
    return FocalPoint(x: min(x / Double(size.width), 1), y: min(y / Double(size.height), 1))
  }
}

/// What a result is extended to, with `background`, where the image is smaller.
public enum Extension: String, CaseIterable, Sendable {
  /// The sides of the box that are given.
  case box
  /// The aspect ratio of the box.
  case ratio
}

/// The widths of four edges, in points or pixels.
public struct Edges: Hashable, Sendable {
  /// At the top.
  public var top = 0
  /// At the right.
  public var right = 0
  /// At the bottom.
  public var bottom = 0
  /// At the left.
  public var left = 0

  /// The range of an edge, in points.
  public static let range = 0...65_535

  /// Creates edges without width.
  public init() {}

  /// Creates edges as CSS does: all; vertical and horizontal; top, horizontal and bottom; or each,
  /// clockwise from the top. `nil` for another number of widths.
  public init?(_ widths: [Int]) {
    guard (1...4).contains(widths.count) else { return nil }
    top = widths[0]
    right = widths.count > 1 ? widths[1] : top
    bottom = widths.count > 2 ? widths[2] : top
    left = widths.count > 3 ? widths[3] : right
  }

  /// The widths, clockwise from the top.
  public var all: [Int] { [top, right, bottom, left] }

  /// Returns the edges in pixels.
  func scaled(by scale: Double) -> Edges {
    Edges(all.map { Int((Double($0) * scale).rounded()) }) ?? self
  }

  /// Returns the edges that a frame, whose sides are at least 1, leaves room for.
  func within(_ room: PixelSize, around frame: PixelSize) -> Edges {
    var edges = self
    edges.left = min(left, max(0, room.width - frame.width))
    edges.right = min(right, max(0, room.width - frame.width - edges.left))
    edges.top = min(top, max(0, room.height - frame.height))
    edges.bottom = min(bottom, max(0, room.height - frame.height - edges.top))
    return edges
  }

  /// Returns the edges times a ratio below 1, rounded down.
  func scaledDown(by ratio: Double) -> Edges { Edges(all.map { Int(Double($0) * ratio) }) ?? self }
}

/// A ratio of width to height.
public struct AspectRatio: Hashable, Sendable {
  /// The width at a height of 1, from 0.001 to 1,000.
  public let value: Double

  /// The range of the ratio, and that of each of its numbers.
  static let range = 0.001...1_000.0
  static let numbers = 0.001...100_000.0

  /// Creates a ratio; `nil` out of the range.
  public init?(_ value: Double) {
    guard Self.range.contains(value) else { return nil }
    self.value = value
  }
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
