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
    width = sizing.width.map { side(Double($0) * scale) }
    height = sizing.height.map { side(Double($0) * scale) }
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
      case .inside, .contain: Factors(both: min(x, y))
      case .outside, .cover: Factors(both: max(x, y))
      case .fill: Factors(x: x, y: y)
      }
    case (let x?, nil): return fit == .fill ? Factors(x: x, y: 1) : Factors(both: x)
    case (nil, let y?): return fit == .fill ? Factors(x: 1, y: y) : Factors(both: y)
    case (nil, nil): return Factors(both: 1)
    }
  }

  /// The factors by which the sides of an image are multiplied.
  struct Factors {
    var x: Double
    var y: Double

    init(x: Double, y: Double) {
      self.x = x
      self.y = y
    }

    init(both factor: Double) { self.init(x: factor, y: factor) }

    /// Returns the sides times the factors, in whole pixels.
    func applied(toWidth width: Double, height: Double) -> PixelSize {
      PixelSize(width: side(width * x), height: side(height * y))
    }
  }
}

/// Returns a side in whole pixels: rounded half away from zero, at least 1.
private func side(_ exact: Double) -> Int { max(1, Int(exact.rounded())) }
