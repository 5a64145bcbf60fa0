// Geometry: computes every size and position of a result before a pixel is decoded.

/// The geometry of a result: the image is resized to `image` and placed at `offset` on a canvas of
/// size `canvas`. Parts outside the canvas are cut off, and uncovered parts are padded. All values
/// refer to the upright image.
public struct Geometry: Equatable, Sendable {
  /// The size that the whole image is resized to.
  public let image: PixelSize
  /// The size of the result.
  public let canvas: PixelSize
  /// Pixels per point of the result, to four decimals and at least 0.001. The size in points is the
  /// size in pixels divided by the density.
  ///
  /// The nominal density is `scale` (1 if absent). Without a box and without `scale`, the source's
  /// density applies. The density is lower than nominal in two cases:
  /// - The source has too few pixels. The density drops until the result fills its box, but not
  ///   below the source's density. `contain` pads to its box and keeps the nominal density; `fill`
  ///   uses the width.
  /// - A limit reduces the result. The density drops in proportion, and the size in points stays
  ///   the same.
  public let density: Double
  /// The size of the result without the limit; `nil` if the limit changes nothing.
  public let scaledDownFrom: PixelSize?
  /// The longest side of any output: libpng's default limit.
  private static let longestCanvas = 1_000_000.0
  /// The longest side of a libvips image: `VIPS_MAX_COORD`.
  private static let longestImage = 10_000_000.0
  /// The smallest density. `Content-DPR` has three decimals, and clients divide by its value.
  public static let leastDensity = 0.001
  /// How the image is aligned on its canvas.
  private let anchor: Anchor

  /// The limits of the size of a result.
  public struct Limits: Equatable, Sendable {
    /// Maximum pixels of a source. It bounds all frames of a result together, too.
    public var sourcePixels: Int
    /// Maximum pixels of a result. All frames of an animation together exceed it only if those of
    /// the source do.
    public var resultPixels: Int
    /// The longest side of the result in pixels.
    public var longestSide: Double

    /// Creates the limits.
    ///
    /// - Parameter longestSide: the longest side of the result in pixels; `nil`: that of any
    ///   output.
    public init(sourcePixels: Int, resultPixels: Int, longestSide: Double? = nil) {
      self.sourcePixels = sourcePixels
      self.resultPixels = resultPixels
      self.longestSide = longestSide ?? longestCanvas
    }
  }

  /// The position of the image's upper left corner on the canvas; negative where the image is cut
  /// off.
  public var offset: (x: Int, y: Int) {
    switch anchor {
    case .named(let x, let y):
      ((canvas.width - image.width) * x / 2, (canvas.height - image.height) * y / 2)
    case .focal(let point):
      (
        Self.offset(of: image.width, on: canvas.width, share: point.x),
        Self.offset(of: image.height, on: canvas.height, share: point.y)
      )
    }
  }

  /// Returns the offset on one axis. If the image is cut, the focal point moves as close to the
  /// middle as the edges allow. If the image is padded, `share` of the free space lies before the
  /// image.
  private static func offset(of image: Int, on canvas: Int, share: Double) -> Int {
    let room = canvas - image
    guard room < 0 else { return Int((Double(room) * share).rounded()) }
    let middle = Double(canvas) / 2 - Double(image) * share
    return min(0, max(room, Int(middle.rounded())))
  }

  /// Whether a part of the canvas is not covered by the image.
  public var isPadded: Bool { canvas.width > image.width || canvas.height > image.height }
  /// Whether a part of the image lies outside the canvas.
  public var isCut: Bool { canvas.width < image.width || canvas.height < image.height }

  /// Computes the geometry of a result.
  ///
  /// Without `enlarge` no axis of the image grows, as with sharp's `withoutEnlargement`. For a
  /// source smaller than the box:
  /// - `inside` and `outside` keep its size.
  /// - `fill` stretches only the axes that shrink.
  /// - `cover` crops what exceeds the box and leaves the other axis smaller than the box.
  /// - `contain` still pads to the box.
  ///
  /// A vector has no pixels of its own and always grows to the requested size. With only `w` or
  /// only `h`, the aspect ratio gives the other side; `fill` leaves the other axis unchanged
  /// (sharp's rule too).
  ///
  /// The limits are:
  /// - `limitbytes` for each frame, like the byte limit of later SDWebImage versions.
  /// - The maximum pixels of a source, for all frames together, so that `enlarge` cannot exceed
  ///   what may be decoded.
  /// - The longest side of any output, or that of the image that a placeholder is computed from.
  ///
  /// - Parameters:
  ///   - source: The size of the upright source region.
  ///   - isVector: Whether the source can be rendered at any size.
  ///   - sizing: The requested size and placement.
  ///   - density: Pixels per point of the source.
  ///   - frames: The number of frames of the result.
  ///   - limits: The limits of the result's size.
  public init(
    of source: PixelSize, isVector: Bool, sizing: Sizing, density: Int, frames: Int,
    limits: Limits
  ) {
    let box = SizeBox(sizing)
    let wanted =
      box?.factors(width: Double(source.width), height: Double(source.height))
      ?? SizeBox.Factors(both: (sizing.scale ?? Double(density)) / Double(density))
    let factors =
      sizing.enlarge || isVector
      ? wanted : SizeBox.Factors(x: min(wanted.x, 1), y: min(wanted.y, 1))

    var image = factors.applied(toWidth: Double(source.width), height: Double(source.height))
    var canvas = image
    switch (sizing.fit, box?.width, box?.height) {
    case (.cover, let width?, let height?):
      canvas = PixelSize(width: min(width, image.width), height: min(height, image.height))
    case (.contain, let width?, let height?):
      image = PixelSize(width: min(width, image.width), height: min(height, image.height))
      canvas = PixelSize(width: width, height: height)
    default: break
    }

    let maximum = limits.resultPixels
    let maximumOfFrame = min(
      maximum, limits.sourcePixels / frames, max(maximum / frames, isVector ? 0 : source.pixels))
    let bytes = Double(min(sizing.limitBytes, 4 * maximumOfFrame))
    let maximumBeforeCut = max(
      Double(maximum), isVector ? 0 : min(source.area, Double(limits.sourcePixels)))
    let ratio = min(
      (bytes / (4 * canvas.area)).squareRoot(),
      (maximumBeforeCut / image.area).squareRoot(),
      limits.longestSide / Double(canvas.longestSide),
      Self.longestImage / Double(image.longestSide), 1)
    if ratio < 1 {
      scaledDownFrom = canvas
      canvas = canvas.scaledDown(by: ratio)
      image = image.scaledDown(by: ratio)
    } else {
      scaledDownFrom = nil
    }
    self.image = image
    self.canvas = canvas

    let nominal = sizing.scale ?? (box == nil ? Double(density) : 1)
    let isPaddedToBox = sizing.fit == .contain && box?.width != nil && box?.height != nil
    let reached = isPaddedToBox ? 1 : factors.x / wanted.x
    let exact = min(nominal, max(nominal * reached, Double(density))) * ratio
    self.density = Self.rounded(exact)
    let named = sizing.position.anchor
    anchor = sizing.focalPoint.map(Anchor.focal) ?? .named(x: named.x, y: named.y)
  }

  /// Returns the pixels per point of a result smaller than the canvas. The density is scaled in
  /// proportion by the longer side, which rounding changes least.
  public func density(at size: PixelSize) -> Double {
    size == canvas
      ? density
      : Self.rounded(density * Double(size.longestSide) / Double(canvas.longestSide))
  }

  private static func rounded(_ density: Double) -> Double {
    max((density * 10_000).rounded() / 10_000, leastDensity)
  }
}

/// The alignment of an image on its canvas.
private enum Anchor: Equatable, Sendable {
  /// The share of the free space before the image, in halves: 0 at one edge, 1 in the middle, 2 at
  /// the other edge.
  case named(x: Int, y: Int)
  /// The focal point that stays visible.
  case focal(FocalPoint)
}

extension PixelSize {
  /// Returns both sides times a ratio below 1, rounded down so that the limit holds, at least 1.
  /// SDWebImage's example: 5250×3450 → 4892×3214.
  fileprivate func scaledDown(by ratio: Double) -> PixelSize {
    PixelSize(
      width: max(1, Int(Double(width) * ratio)), height: max(1, Int(Double(height) * ratio)))
  }
}
