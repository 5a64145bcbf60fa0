// PixelSize and PixelArea: sizes and parts of images, counted in pixels.

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

/// A part of an image.
public struct PixelArea: Hashable, Sendable, CustomStringConvertible {
  /// Pixels left of it.
  public let x: Int
  /// Pixels above it.
  public let y: Int
  /// Its own size.
  public let size: PixelSize

  /// A part of an image.
  public init(x: Int, y: Int, size: PixelSize) {
    (self.x, self.y, self.size) = (x, y, size)
  }

  /// `10,20,300,200`: left, top, width, height.
  public var description: String { "\(x),\(y),\(size.width),\(size.height)" }
}
