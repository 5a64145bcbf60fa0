// Geometry: every size and place of a result, computed from numbers alone before a pixel is decoded.

import ImagingWire
import Model

/// How an image becomes the result: it is resized to `image`, then laid on a canvas of `canvas` with its upper left
/// corner at `offset`. What sticks out is cut off, what stays bare is padded. All of it speaks of the upright image.
struct Geometry: Equatable {
  /// Size the whole image is resized to.
  let image: PixelSize
  /// Size of the result.
  let canvas: PixelSize
  /// Pixels per point of the result, to four places and at least 0.001: the size in points is the size in pixels divided
  /// by it.
  ///
  /// Without a box and without `scale` the source's density, else `scale` (1 if absent). Less where the image was not
  /// made as large as that asks for:
  /// - Of a source with too few pixels, so much less that the result still fills its box, but never less than the
  ///   source's density: what is not to be enlarged is not to be shown larger than the source is. (`contain` pads to its
  ///   box all the same and falls short of nothing; `fill` goes by the width.)
  /// - Because of the limit, in proportion: the size in points stays what it was.
  let density: Double
  /// Size the result would have had without the limit; `nil` where that changed nothing.
  let scaledDownFrom: PixelSize?
  /// The longest side that any output can have: libpng's default limit.
  private static let longestCanvas = 1_000_000.0
  /// libvips's `VIPS_MAX_COORD`.
  private static let longestImage = 10_000_000.0
  /// `Content-DPR` has three decimals, and clients divide by it.
  static let leastDensity = 0.001
  /// What lies where.
  private let anchor: Anchor

  /// Where the image's corner lies on the canvas; negative where something is cut off there.
  var offset: (x: Int, y: Int) {
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

  /// Of an image that is cut, the point comes as near to the middle as the image's edges let it; of the room around
  /// one that is padded, its share lies before the image.
  private static func offset(of image: Int, on canvas: Int, share: Double) -> Int {
    let room = canvas - image
    guard room < 0 else { return Int((Double(room) * share).rounded()) }
    let middle = Double(canvas) / 2 - Double(image) * share
    return min(0, max(room, Int(middle.rounded())))
  }

  /// Whether a part of the canvas stays bare.
  var isPadded: Bool { canvas.width > image.width || canvas.height > image.height }
  /// Whether a part of the image is cut off.
  var isCut: Bool { canvas.width < image.width || canvas.height < image.height }

  /// Computes it.
  ///
  /// Without `enlarge` neither axis of the image grows, as with sharp's `withoutEnlargement`: of a source smaller
  /// than the box, `inside` and `outside` keep its size, `fill` stretches only the axes that shrink, `cover` cuts what
  /// the box cannot hold and leaves the rest smaller than the box, and `contain` pads to the box all the same. A vector
  /// has no pixels to run out of, so it grows freely. With only `w` or only `h` the aspect ratio gives the other side,
  /// except that `fill` leaves the other axis alone (sharp's rule too).
  ///
  /// The limit is `limitbytes` for each frame (as SDWebImage's later byte limit), and the most pixels of a source for all
  /// frames together, so that `enlarge` cannot ask for more than may be decoded. A side longer than anything can be is
  /// above the limit too, and so is one longer than a placeholder is made of.
  ///
  /// - Parameters:
  ///   - source: Size of the upright source, or of the part of it that is used.
  ///   - isVector: Whether it can be rendered at any size.
  ///   - transform: What is wanted.
  ///   - density: Pixels per point of the source.
  ///   - frames: How many frames the result has.
  ///   - limits: Most pixels of a source, which are those of a result's frames together, and of a result. An animation's
  ///     frames together have no more than a result may either, unless its source has.
  init(
    of source: PixelSize, isVector: Bool, transform: Transform, density: Int, frames: Int,
    limits: ImagingLimits
  ) {
    let box = Box(transform)
    let wanted =
      box?.factors(for: source, fit: transform.fit)
      ?? Factors(both: (transform.scale ?? Double(density)) / Double(density))
    let factors =
      transform.enlarge || isVector
      ? wanted : Factors(x: min(wanted.x, 1), y: min(wanted.y, 1))

    var image = PixelSize(
      width: side(Double(source.width) * factors.x), height: side(Double(source.height) * factors.y)
    )
    var canvas = image
    switch (transform.fit, box?.width, box?.height) {
    case (.cover, let width?, let height?):
      canvas = PixelSize(width: min(width, image.width), height: min(height, image.height))
    case (.contain, let width?, let height?):
      image = PixelSize(width: min(width, image.width), height: min(height, image.height))
      canvas = PixelSize(width: width, height: height)
    default: break
    }

    let most = limits.maximumResultPixels
    let mostOfFrame = min(
      most, limits.maximumPixels / frames, max(most / frames, isVector ? 0 : source.pixels))
    let bytes = Double(min(transform.limitBytes, 4 * mostOfFrame))
    let mostBeforeCut = max(
      Double(most), isVector ? 0 : min(source.area, Double(limits.maximumPixels)))
    let ratio = min(
      (bytes / (4 * canvas.area)).squareRoot(),
      (mostBeforeCut / image.area).squareRoot(),
      (transform.product.longestSide ?? Self.longestCanvas) / Double(canvas.longestSide),
      Self.longestImage / Double(image.longestSide), 1)
    if ratio < 1 {
      scaledDownFrom = canvas
      canvas = canvas.scaledDown(by: ratio)
      image = image.scaledDown(by: ratio)
    } else {
      scaledDownFrom = nil
    }
    (self.image, self.canvas) = (image, canvas)

    let nominal = transform.scale ?? (box == nil ? Double(density) : 1)
    let isPaddedToBox = transform.fit == .contain && box?.width != nil && box?.height != nil
    let reached = isPaddedToBox ? 1 : factors.x / wanted.x
    let exact = min(nominal, max(nominal * reached, Double(density))) * ratio
    self.density = Self.rounded(exact)
    let named = transform.position.anchor
    anchor = transform.focalPoint.map(Anchor.focal) ?? .named(x: named.x, y: named.y)
  }

  /// Pixels per point where the result was made smaller than the canvas: in proportion, as with the limit, by the longer
  /// side, which rounding changes least.
  func density(at size: PixelSize) -> Double {
    size == canvas
      ? density
      : Self.rounded(density * Double(size.longestSide) / Double(canvas.longestSide))
  }

  private static func rounded(_ density: Double) -> Double {
    max((density * 10_000).rounded() / 10_000, leastDensity)
  }
}

/// What of an image lies where on its canvas.
private enum Anchor: Equatable {
  /// Parts of 2 of the room left over that lie before the image: 0 at the edge, 1 in the middle, 2 at the other edge.
  case named(x: Int, y: Int)
  /// What matters most.
  case focal(FocalPoint)
}

/// What an image's sides are multiplied by.
private struct Factors {
  var x: Double
  var y: Double

  init(x: Double, y: Double) { (self.x, self.y) = (x, y) }
  init(both factor: Double) { (x, y) = (factor, factor) }
}

/// The box of `w` and `h`, in pixels; at least one side is given.
private struct Box {
  let width: Int?
  let height: Int?

  /// `nil` when there is neither `w` nor `h`.
  init?(_ transform: Transform) {
    guard transform.width != nil || transform.height != nil else { return nil }
    let scale = transform.scale ?? 1
    width = transform.width.map { side(Double($0) * scale) }
    height = transform.height.map { side(Double($0) * scale) }
  }

  /// What a source's sides are multiplied by to be in this box.
  func factors(for source: PixelSize, fit: Fit) -> Factors {
    let x = width.map { Double($0) / Double(source.width) }
    let y = height.map { Double($0) / Double(source.height) }
    switch (x, y) {
    case (let x?, let y?):
      return switch fit {
      case .inside, .contain: Factors(both: min(x, y))
      case .outside, .cover: Factors(both: max(x, y))
      case .fill: Factors(x: x, y: y)
      }
    case (let x?, nil): return fit == .fill ? Factors(x: x, y: 1) : Factors(both: x)
    case (nil, let y?): return fit == .fill ? Factors(x: 1, y: y) : Factors(both: y)
    case (nil, nil): return Factors(both: 1)
    }
  }
}

/// A side in whole pixels: rounded half away from zero, at least 1.
private func side(_ exact: Double) -> Int { max(1, Int(exact.rounded())) }

extension PixelSize {
  /// How many pixels that is, for sizes whose product may be past what an integer holds.
  var area: Double { Double(width) * Double(height) }

  fileprivate var longestSide: Int { max(width, height) }

  /// Both sides times a ratio below 1, rounded down so that the limit holds, at least 1: SDWebImage's 5250×3450 →
  /// 4892×3214.
  fileprivate func scaledDown(by ratio: Double) -> PixelSize {
    PixelSize(
      width: max(1, Int(Double(width) * ratio)), height: max(1, Int(Double(height) * ratio)))
  }
}

extension Position {
  /// Which part of 2 of the room left over lies before the image. What the image itself decides counts as the
  /// middle.
  var anchor: (x: Int, y: Int) {
    switch self {
    case .center, .entropy, .attention: (1, 1)
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
