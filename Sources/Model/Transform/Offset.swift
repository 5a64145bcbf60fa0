// Offset: lengths along the sides of an image, and how far a part lies from its place.

/// A length along a side of an image.
public enum Length: Hashable, Sendable {
  /// Pixels, or points where a density applies.
  case pixels(Int)
  /// A share of the side.
  case share(Double)

  /// Returns the length in whole pixels, where `pixels` are points of this density.
  public func pixels(of side: Int, scale: Double = 1) -> Int {
    switch self {
    case .pixels(let pixels) where scale == 1: pixels
    case .pixels(let points): Int((Double(points) * scale).rounded())
    case .share(let share): Int((Double(side) * share).rounded())
    }
  }

  /// Digits; with a point if it is a share.
  var text: String {
    switch self {
    case .pixels(let pixels): "\(pixels)"
    // Swift writes the point also of whole numbers.
    case .share(let share): "\(share)"
    }
  }
}

/// How far a part lies from its place: inward from the side that the place names, and from a centre
/// to the right and down (imgproxy's gravity offsets). The part stays inside.
public struct Offset: Hashable, Sendable {
  /// Along the width.
  public var x: Length
  /// Along the height.
  public var y: Length

  /// The range of points or pixels.
  static let range = -65_535...65_535

  /// Creates an offset; by default none.
  public init(x: Length = .pixels(0), y: Length = .pixels(0)) { (self.x, self.y) = (x, y) }

  /// Returns where a part begins on an axis.
  ///
  /// - Parameters:
  ///   - room: the pixels that the whole has beside the part, at least 0.
  ///   - anchor: how much of the room lies before the part without an offset, in halves.
  ///   - length: the offset on this axis.
  ///   - side: the pixels of the whole.
  ///   - scale: pixels per point.
  public static func start(
    room: Int, anchor: Int, by length: Length, of side: Int, scale: Double = 1
  ) -> Int {
    let shift = length.pixels(of: side, scale: scale)
    return max(0, min(room * anchor / 2 + (anchor == 2 ? -shift : shift), room))
  }
}

extension ParameterKind where Value == Offset {
  /// `x,y`.
  static var offset: ParameterKind {
    ParameterKind(
      allowed: AllowedValues(
        text: "x,y: whole points, or shares from -1.0 to 1.0", form: .text),
      read: { given in
        let parts = given.parts(2)?.compactMap(\.offset) ?? []
        return parts.count == 2 ? Offset(x: parts[0], y: parts[1]) : nil
      }, text: { $0 == Offset() ? nil : $0.x.text + "," + $0.y.text })
  }
}

extension ParameterText {
  /// Reads pixels in a range, or a share, which has a point.
  func length(_ pixels: ClosedRange<Int>) -> Length? {
    text.contains(".") || text.contains("e")
      ? decimal(in: 0...1).map(Length.share) : whole(in: pixels).map(Length.pixels)
  }

  /// Reads a length that may be negative.
  var offset: Length? {
    guard text.hasPrefix("-") else { return length(0...Offset.range.upperBound) }
    switch part(String(text.dropFirst())).length(0...Offset.range.upperBound) {
    case .pixels(let pixels)?: return .pixels(-pixels)
    case .share(let share)?: return .share(-share)
    case nil: return nil
    }
  }
}
