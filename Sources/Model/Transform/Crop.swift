// Crop: the part of a source that a request asks for, in pixels or in shares of its sides.

/// A part of the image as turned.
public struct Crop: Hashable, Sendable {
  /// Where the part is.
  public enum Place: Hashable, Sendable {
    /// Its distance from the left and the upper edge.
    case at(x: Length, y: Length)
    /// A named position, but for smart ones, and how far inward from there.
    case named(Position, Offset = Offset())
    /// As near as the edges allow around a point, in shares of the sides.
    case around(FocalPoint)
    /// Around all faces, with a margin on each side in shares of a face's width and height; the
    /// whole image if it shows none. Faces are found first: `area(in:)` is the image.
    case faces(margin: Double)
  }

  /// The margin that shows a head with its hair: a face ends at the brows and the chin.
  public static let usualMargin = 0.5
  /// The range of the margin.
  public static let marginRange = 0.0...10.0

  /// Where the part is.
  public var place: Place
  /// Its width, at least a pixel; 0 pixels at a named place: the image's.
  public var width: Length
  /// Its height, likewise.
  public var height: Length

  /// Creates a part of a size at a place.
  public init(width: Length, height: Length, at place: Place) {
    (self.place, self.width, self.height) = (place, width, height)
  }

  /// Returns the area of the part in an image of this size; `nil` if it is outside.
  public func area(in whole: PixelSize) -> PixelArea? {
    let (x, width) = line(0, width, in: whole.width)
    let (y, height) = line(1, height, in: whole.height)
    guard x < whole.width, y < whole.height else { return nil }
    return PixelArea(x: x, y: y, size: PixelSize(width: width, height: height))
  }

  /// Returns where the part begins on an axis, 0 across and 1 down, and its length.
  private func line(_ axis: Int, _ length: Length, in side: Int) -> (start: Int, length: Int) {
    switch place {
    case .at(let x, let y):
      let given = axis == 0 ? x : y
      var start = given.pixels(of: side)
      // A share below 1 is inside, however it is rounded.
      if case .share(let share) = given, share < 1 { start = min(start, side - 1) }
      return (start, min(max(length.pixels(of: side), 1), side - start))
    case .named(let position, let offset):
      let used = self.length(length, in: side)
      let start = Offset.start(
        room: side - used, anchor: axis == 0 ? position.anchor.x : position.anchor.y,
        by: axis == 0 ? offset.x : offset.y, of: side)
      return (start, used)
    case .around(let point):
      let used = self.length(length, in: side)
      let middle = Double(side) * (axis == 0 ? point.x : point.y)
      return (max(0, min(Int((middle - Double(used) / 2).rounded()), side - used)), used)
    case .faces: return (0, side)
    }
  }

  /// Returns a length that is the whole side for 0 pixels.
  private func length(_ length: Length, in side: Int) -> Int {
    length == .pixels(0) ? side : min(max(length.pixels(of: side), 1), side)
  }
}

extension ParameterKind where Value == Crop {
  /// `x,y,w,h`, or `w,h` and a place.
  static var crop: ParameterKind {
    let places = Position.plain
    return ParameterKind(
      allowed: AllowedValues(
        text: "x,y,w,h or w,h or w,h,place or w,h,place,x,y: whole source pixels, or shares from "
          + "0.0 to 1.0; a place is fp, for a focal point, or one of "
          + places.map(\.rawValue).joined(separator: ", ")
          + "; or faces, or faces and a margin from 0 to 10, such as faces,0.4",
        unit: "pixels", form: .area),
      read: { given in
        let parts = given.text.split(separator: ",", omittingEmptySubsequences: false).map {
          String($0)
        }
        let lengths = parts.map { given.part($0).length(Selection.cropRange) }
        if parts[0] == Position.faces.rawValue, parts.count <= 2 {
          let margin =
            parts.count == 1
            ? Crop.usualMargin : given.part(parts[1]).decimal(in: Crop.marginRange)
          return margin.map {
            Crop(width: .pixels(0), height: .pixels(0), at: .faces(margin: $0))
          }
        }
        switch (parts.count, lengths[0], lengths.count > 1 ? lengths[1] : nil) {
        case (2, let width?, let height?):
          return Crop(width: width, height: height, at: .named(.center))
        case (3, let width?, let height?):
          return places.first { $0.rawValue == parts[2] }.map {
            Crop(width: width, height: height, at: .named($0))
          }
        case (5, let width?, let height?) where parts[2] == "fp":
          let point = parts[3...].compactMap { given.part($0).decimal(in: 0...1) }
          guard point.count == 2 else { return nil }
          return Crop(
            width: width, height: height, at: .around(FocalPoint(x: point[0], y: point[1])))
        case (5, let width?, let height?):
          let offset = parts[3...].compactMap { given.part($0).offset }
          guard offset.count == 2, let place = places.first(where: { $0.rawValue == parts[2] })
          else { return nil }
          return Crop(
            width: width, height: height, at: .named(place, Offset(x: offset[0], y: offset[1])))
        case (4, let x?, let y?):
          guard let width = lengths[2], let height = lengths[3], !width.isNothing,
            !height.isNothing
          else { return nil }
          return Crop(width: width, height: height, at: .at(x: x, y: y))
        default: return nil
        }
      }, text: \.text)
  }
}

extension Crop {
  /// The one text.
  public var text: String {
    switch place {
    case .at(let x, let y): [x, y, width, height].map(\.text).joined(separator: ",")
    case .named(let position, Offset()):
      "\(width.text),\(height.text)" + (position == .center ? "" : "," + position.rawValue)
    case .named(let position, let offset):
      "\(width.text),\(height.text),\(position.rawValue),\(offset.x.text),\(offset.y.text)"
    case .around(let point):
      "\(width.text),\(height.text),fp,"
        + ParameterText.of(point.x) + "," + ParameterText.of(point.y)
    case .faces(Self.usualMargin): "faces"
    case .faces(let margin): "faces," + ParameterText.of(margin)
    }
  }
}

extension Length {
  /// Whether no pixel is asked for.
  fileprivate var isNothing: Bool { self == .pixels(0) || self == .share(0) }
}
