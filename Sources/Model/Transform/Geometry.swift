// Geometry: computes every size and position of a result before a pixel is decoded.

/// The geometry of a result: the image is resized to `image`, what is not `shown` is cut off, and
/// the rest is placed in a `frame`, which turns and is then `turned` large; `padding` around that
/// makes the `canvas`. All values refer to the upright image.
public struct Geometry: Equatable, Sendable {
  /// The size that the whole image is resized to.
  public let image: PixelSize
  /// The size of the result.
  public let canvas: PixelSize
  /// The size of the part of the image that is shown.
  public let shown: PixelSize
  /// The size of the result without the padding around it, and before it turns.
  public let frame: PixelSize
  /// The size of the turned frame: the frame's without an angle.
  public let turned: PixelSize
  /// The pixels around the frame.
  public let padding: Edges
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
  /// How far inward from there, in points of `scale` pixels or shares.
  private let shift: Offset
  private let scale: Double

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

  /// Where the part that is shown begins in the image.
  public var cutOrigin: (x: Int, y: Int) { start(of: shown, in: image, isCut: true) }
  /// Where the shown part lies in the frame.
  public var placeOrigin: (x: Int, y: Int) { start(of: shown, in: frame, isCut: false) }

  /// Returns where a part begins in a whole that is not smaller on either side.
  private func start(
    of part: PixelSize, in whole: PixelSize, isCut: Bool
  ) -> (x: Int, y: Int) {
    switch anchor {
    case .named(let x, let y):
      (
        Offset.start(
          room: whole.width - part.width, anchor: x, by: shift.x, of: whole.width, scale: scale),
        Offset.start(
          room: whole.height - part.height, anchor: y, by: shift.y, of: whole.height, scale: scale)
      )
    case .focal(let point):
      (
        start(of: part.width, in: whole.width, share: point.x, isCut: isCut),
        start(of: part.height, in: whole.height, share: point.y, isCut: isCut)
      )
    }
  }

  /// Returns the start on one axis for a focal point. What is cut has the point as close to its
  /// middle as the edges allow; what is placed has `share` of the free space before it.
  private func start(of part: Int, in whole: Int, share: Double, isCut: Bool) -> Int {
    let room = Double(whole - part)
    guard isCut else { return Int((room * share).rounded()) }
    return Int(max(0, min(Double(whole) * share - Double(part) / 2, room)).rounded())
  }

  /// Whether a part of the canvas is not covered by the image.
  public var isPadded: Bool {
    frame.width > shown.width || frame.height > shown.height || padding != Edges()
  }
  /// Whether a part of the image is not shown.
  public var isCut: Bool { shown != image }

  /// Computes the geometry of a result.
  ///
  /// Without `enlarge` no axis of the image grows, as with sharp's `withoutEnlargement`. For a
  /// source smaller than the box:
  /// - `inside` and `outside` keep its size.
  /// - `fill` stretches only the axes that shrink.
  /// - `cover` crops what exceeds the box and leaves the other axis smaller than the box;
  ///   `cover-down` crops it to the box's aspect ratio.
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
    let sizing = sizing.absolute(in: source)
    let (width, height) = (Double(source.width), Double(source.height))
    let given = SizeBox(sizing)
    let plain = (sizing.scale ?? Double(density)) / Double(density)
    let reachable = sizing.enlarge || isVector ? plain : min(plain, 1)
    let box = given ?? SizeBox(sizing, within: width * reachable, height * reachable)
    let wanted =
      box?.factors(width: width, height: height) ?? SizeBox.Factors.both(plain)
    var factors =
      sizing.enlarge || isVector
      ? wanted : SizeBox.Factors(x: min(wanted.x, 1), y: min(wanted.y, 1))
    if sizing.fit != .contain { factors.reach(sizing, width: width, height: height) }

    var image = factors.applied(toWidth: width, height: height)
    var frame = image
    switch (sizing.fit, box?.width, box?.height) {
    case (.cover, let width?, let height?), (.auto, let width?, let height?):
      frame = PixelSize(width: min(width, image.width), height: min(height, image.height))
    case (.coverDown, let width?, let height?):
      frame = PixelSize(width: width, height: height).shrunk(into: image)
    case (.contain, let width?, let height?):
      image = PixelSize(width: min(width, image.width), height: min(height, image.height))
      frame = PixelSize(width: width, height: height)
    case (let fit, _, _) where sizing.hasLeastSide && fit != .outside:
      frame = PixelSize(
        width: min(box?.width ?? image.width, image.width),
        height: min(box?.height ?? image.height, image.height))
    default: break
    }
    var shown = frame.within(image)
    frame = frame.extended(by: sizing.extend, to: box)
    var padding = sizing.padding.scaled(by: sizing.scale ?? 1)
    var turned = frame.turned(by: sizing.angle)
    var canvas = turned.surrounded(by: padding)
    let shrink = sizing.limitSide.map { min(1, Double($0) / Double(canvas.longestSide)) } ?? 1
    if shrink < 1 {
      let whole = image
      image = SizeBox.Factors(x: factors.x * shrink, y: factors.y * shrink)
        .applied(toWidth: width, height: height)
      shown = shown.following(whole, to: image, by: shrink)
      frame = frame.following(whole, to: image, by: shrink)
      padding = sizing.padding.scaled(by: (sizing.scale ?? 1) * shrink)
      turned = frame.turned(by: sizing.angle)
      canvas = turned.surrounded(by: padding)
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
      let room = canvas.scaledDown(by: ratio)
      frame = frame.scaledDown(by: ratio)
      // Rounding may have added a pixel.
      turned = frame.turned(by: sizing.angle).within(room)
      padding = padding.scaledDown(by: ratio).within(room, around: turned)
      canvas = turned.surrounded(by: padding)
      image = image.scaledDown(by: ratio)
      shown = shown.scaledDown(by: ratio).within(image).within(frame)
    } else {
      scaledDownFrom = nil
    }
    self.image = image
    self.shown = shown
    self.frame = frame
    self.turned = turned
    self.padding = padding
    self.canvas = canvas

    let nominal = sizing.scale ?? (given == nil ? Double(density) : 1)
    let isPaddedToBox =
      (sizing.fit == .contain || sizing.extend == .box) && box?.width != nil && box?.height != nil
    let reached = isPaddedToBox ? 1 : factors.x / wanted.x
    let exact = min(nominal, max(nominal * reached, Double(density))) * ratio * shrink
    self.density = Self.rounded(exact)
    shift = sizing.offset
    scale = (sizing.scale ?? 1) * ratio * shrink
    let named = sizing.position.anchor
    anchor =
      sizing.focalPoint.map { .focal($0.inShares(of: source)) } ?? .named(x: named.x, y: named.y)
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
  /// Returns the largest size of this aspect ratio, and not above this size, inside another one.
  fileprivate func shrunk(into other: PixelSize) -> PixelSize {
    let ratio = min(
      1, Double(other.width) / Double(width), Double(other.height) / Double(height))
    return PixelSize(
      width: max(1, Int((Double(width) * ratio).rounded())),
      height: max(1, Int((Double(height) * ratio).rounded())))
  }

  /// Returns this size with the sides that a box has, or in its shape, if that is larger.
  fileprivate func extended(by extend: Extension?, to box: SizeBox?) -> PixelSize {
    switch (extend, box?.width, box?.height) {
    case (.box, let boxWidth, let boxHeight):
      return PixelSize(width: max(width, boxWidth ?? 0), height: max(height, boxHeight ?? 0))
    case (.ratio, let boxWidth?, let boxHeight?):
      let ratio = Double(boxWidth) / Double(boxHeight)
      return PixelSize(
        width: max(width, Int((Double(height) * ratio).rounded())),
        height: max(height, Int((Double(width) / ratio).rounded())))
    default: return self
    }
  }

  /// Returns this size of a frame for an image that has shrunk: sides that were the image's still
  /// are, others shrink as well, and are not on its other side.
  fileprivate func following(
    _ whole: PixelSize, to image: PixelSize, by ratio: Double
  ) -> PixelSize {
    func side(_ own: Int, _ whole: Int, _ image: Int) -> Int {
      let shrunk = max(1, Int((Double(own) * ratio).rounded()))
      return own == whole ? image : own < whole ? min(shrunk, image) : max(shrunk, image)
    }
    return PixelSize(
      width: side(width, whole.width, image.width),
      height: side(height, whole.height, image.height))
  }

  /// Returns the size without what exceeds another one.
  fileprivate func within(_ other: PixelSize) -> PixelSize {
    PixelSize(width: min(width, other.width), height: min(height, other.height))
  }

  /// Returns the size of an upright rectangle around one of this size that is turned by degrees.
  fileprivate func turned(by angle: Double) -> PixelSize {
    guard angle != 0 else { return self }
    let (cosine, sine) = angle.cosineAndSine
    func side(_ along: Int, _ other: Int) -> Int {
      max(1, Int((Double(along) * abs(cosine) + Double(other) * abs(sine)).rounded()))
    }
    return PixelSize(width: side(width, height), height: side(height, width))
  }

  fileprivate func surrounded(by edges: Edges) -> PixelSize {
    PixelSize(
      width: width + edges.left + edges.right, height: height + edges.top + edges.bottom)
  }
}
