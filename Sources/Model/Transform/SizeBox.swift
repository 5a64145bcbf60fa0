// SizeBox: the box of w and h in pixels, and how it scales an image.

/// The box of `w` and `h`, in pixels. At least one side is set.
public struct SizeBox: Equatable, Sendable {
  /// The width in pixels; `nil`: the aspect ratio gives it.
  let width: Int?
  /// The height in pixels; `nil`: the aspect ratio gives it.
  let height: Int?
  private let fit: Fit

  /// Creates the box of a sizing. Returns `nil` if neither `w` nor `h` is set.
  public init?(_ sizing: Sizing) {
    guard sizing.width != nil || sizing.height != nil else { return nil }
    let scale = sizing.scale ?? 1
    let ratio = sizing.aspectRatio?.value
    let given = (sizing.width.map { Double($0) * scale }, sizing.height.map { Double($0) * scale })
    width = (given.0 ?? ratio.flatMap { ratio in given.1.map { $0 * ratio } }).map(side)
    height = (given.1 ?? ratio.flatMap { ratio in given.0.map { $0 / ratio } }).map(side)
    fit = sizing.fit
  }

  /// Creates the largest box of the aspect ratio in an image of these sides; `nil` without one.
  init?(_ sizing: Sizing, within ownWidth: Double, _ ownHeight: Double) {
    guard let ratio = sizing.aspectRatio?.value else { return nil }
    width = side(min(ownWidth, ownHeight * ratio))
    height = side(min(ownHeight, ownWidth / ratio))
    fit = sizing.fit
  }

  /// Returns the size that an image is resized to, without limits and even if it grows.
  ///
  /// - Parameters:
  ///   - width: The width of the image in pixels, above 0.
  ///   - height: The height of the image in pixels, above 0.
  public func imageSize(width: Double, height: Double) -> PixelSize {
    factors(width: width, height: height).applied(toWidth: width, height: height)
  }

  /// Returns the factors that fit an image of these sides into this box.
  func factors(width ownWidth: Double, height ownHeight: Double) -> Factors {
    let x = width.map { Double($0) / ownWidth }
    let y = height.map { Double($0) / ownHeight }
    switch (x, y) {
    case (let x?, let y?):
      return switch fit {
      case .inside, .contain: Factors.both(min(x, y))
      case .outside, .cover, .coverDown: Factors.both(max(x, y))
      case .auto: Factors.both(isAsWide(ownWidth, ownHeight) ? max(x, y) : min(x, y))
      case .fill: Factors(x: x, y: y)
      }
    case (let x?, nil): return fit == .fill ? Factors(x: x, y: 1) : Factors.both(x)
    case (nil, let y?): return fit == .fill ? Factors(x: 1, y: y) : Factors.both(y)
    case (nil, nil): return Factors.both(1)
    }
  }

  /// Whether `auto` covers the box with an image of these sides: both are wide, or both are high.
  func isAsWide(_ ownWidth: Double, _ ownHeight: Double) -> Bool {
    guard let width, let height else { return false }
    return (ownWidth >= ownHeight) == (width >= height)
  }

  /// The factors by which the sides of an image are multiplied.
  struct Factors {
    var x: Double
    var y: Double

    static func both(_ factor: Double) -> Factors { Factors(x: factor, y: factor) }

    /// Makes the least sides of a sizing reached.
    mutating func reach(_ sizing: Sizing, width: Double, height: Double) {
      let scale = sizing.scale ?? 1
      let leastX = sizing.minWidth.map { Double($0) * scale / width } ?? 0
      let leastY = sizing.minHeight.map { Double($0) * scale / height } ?? 0
      guard sizing.fit != .fill else {
        (x, y) = (max(x, leastX), max(y, leastY))
        return
      }
      let growth = max(1, leastX / x, leastY / y)
      (x, y) = (x * growth, y * growth)
    }

    /// Returns the sides times the factors, in whole pixels.
    func applied(toWidth width: Double, height: Double) -> PixelSize {
      PixelSize(width: side(width * x), height: side(height * y))
    }
  }
}

/// Returns a side in whole pixels: rounded half away from zero, at least 1.
private func side(_ exact: Double) -> Int { max(1, Int(exact.rounded())) }
