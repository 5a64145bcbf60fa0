// PixelSize: sizes (`PixelSize`) and regions (`PixelArea`) in pixels.

/// A size in pixels.
public struct PixelSize: Hashable, Sendable, Codable, CustomStringConvertible {
  /// The width in pixels.
  public let width: Int
  /// The height in pixels.
  public let height: Int

  /// Creates a size in pixels.
  public init(width: Int, height: Int) {
    self.width = width
    self.height = height
  }

  /// The number of pixels. The sides of a request may overflow it; see `area`.
  public var pixels: Int { width * height }
  /// The area in pixels as a `Double`, because the product may overflow an `Int`.
  public var area: Double { Double(width) * Double(height) }
  /// The longer side in pixels.
  public var longestSide: Int { max(width, height) }
  /// This size with width and height swapped.
  public var turned: PixelSize { PixelSize(width: height, height: width) }

  /// Returns both sides times a ratio of at most 1, rounded down so that a limit holds, at least 1.
  /// SDWebImage's example: 5250×3450 → 4892×3214.
  public func scaledDown(by ratio: Double) -> PixelSize {
    PixelSize(
      width: max(1, Int(Double(width) * ratio)), height: max(1, Int(Double(height) * ratio)))
  }

  /// `5250x3450`.
  public var description: String { "\(width)x\(height)" }
}

/// A rectangular region of an image, in pixels.
public struct PixelArea: Hashable, Sendable, CustomStringConvertible {
  /// The distance from the left edge.
  public let x: Int
  /// The distance from the top edge.
  public let y: Int
  /// The size of the region.
  public let size: PixelSize

  /// Creates a region.
  public init(x: Int, y: Int, size: PixelSize) {
    self.x = x
    self.y = y
    self.size = size
  }

  /// `10,20,300,200`: left, top, width, height.
  public var description: String { "\(x),\(y),\(size.width),\(size.height)" }
}
