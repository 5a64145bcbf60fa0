// Selection: the part of a source that a transform uses, and how it is turned.

/// The part of a source that a transform uses: first turned, then cropped, then trimmed.
public struct Selection: Hashable, Sendable {
  /// The only frame to use of an animation, from 0; `nil`: all frames.
  public var frame: Int?
  /// Whether the image is turned as its EXIF orientation says. Decoders of HEIC, AVIF and JPEG XL
  /// always turn it.
  public var isUpright = true
  /// A rotation after the EXIF orientation and before `crop`.
  public var rotation: Rotation = .none
  /// A mirroring after the rotation and before `crop`.
  public var flip: Flip = .none
  /// The part to use of the image as turned. What is outside of the image is ignored.
  public var crop: Crop?
  /// The maximum difference (of 255) from the top left pixel at which edges are trimmed, after
  /// `crop`; `nil`: no trimming.
  public var trim: Int?
  /// The colour of the edges in place of the top left pixel's.
  public var trimColor: Color?
  /// The axes on which both edges lose as much as the one that can lose less.
  public var trimEqual: Axes?

  /// The range of each number of `crop`. The upper bound is libvips's longest side
  /// (`VIPS_MAX_COORD`).
  public static let cropRange = 0...10_000_000
  /// The range of `trim`.
  public static let trimRange = 1...255

  /// Creates the selection of the whole source, as upright as its EXIF orientation says.
  public init() {}

  /// Whether the selection has every pixel of every frame. Rotation and flip keep all pixels; any
  /// other property, new ones included, makes this false.
  public var isWhole: Bool {
    var whole = Selection()
    whole.isUpright = isUpright
    whole.rotation = rotation
    whole.flip = flip
    return self == whole
  }
}

/// Axes of an image.
public enum Axes: String, CaseIterable, Sendable {
  /// From left to right.
  case horizontal = "h"
  /// From top to bottom.
  case vertical = "v"
  /// Both.
  case both = "hv"
}

extension Selection {
  /// Quarters turn the source, all other degrees the result.
  private static let rotate = TransformParameter(
    "rotate",
    AllowedValues(
      text: "degrees from -360 to 360", numbers: .decimal(-360...360), unit: "degrees"),
    in: .part, "Degrees clockwise: quarters before the crop, others turn the result",
    read: { given, draft in
      guard let degrees = given.signed(upTo: 360) else { return false }
      let turn = (degrees + 360).truncatingRemainder(dividingBy: 360)
      let quarters = Rotation(rawValue: Int(turn)).flatMap {
        Double($0.rawValue) == turn ? $0 : nil
      }
      draft.transform.selection.rotation = quarters ?? .none
      draft.transform.sizing.angle = quarters == nil ? turn : 0
      return true
    },
    text: { draft in
      let (rotation, angle) = (draft.transform.selection.rotation, draft.transform.sizing.angle)
      return angle != 0
        ? ParameterText.of(angle) : rotation == .none ? nil : "\(rotation.rawValue)"
    })

  /// The parameters of the selection.
  static let parameters = [
    TransformParameter(
      "frame", .whole(0...Int(Int32.max), saying: "a whole number, at least 0"), in: .source,
      "One frame of an animation, counted from 0"
    ) { $1(&$0.transform.selection.frame) },
    TransformParameter(
      "orient", .flag, in: .part,
      "Turn upright by the EXIF orientation"
    ) { $1(&$0.transform.selection.isUpright) },
    rotate,
    TransformParameter(
      "flip", .names(Flip.allCases.filter { $0 != .none }),
      in: .part, "Mirror left to right, top to bottom, or both"
    ) { $1(&$0.transform.selection.flip) },
    TransformParameter(
      "crop", .crop, in: .part,
      "The part of the image as turned: x,y,w,h, or w,h and a place, in pixels or shares; or faces"
    ) { $1(&$0.transform.selection.crop) },
    TransformParameter(
      "trim", .whole(trimRange), in: .part,
      "Cut off plain edges; how much a pixel may differ"
    ) { $1(&$0.transform.selection.trim) },
    TransformParameter(
      "trim_color", .color, in: .part,
      "The edges' colour, in place of the top left pixel's"
    ) { $1(&$0.transform.selection.trimColor) },
    TransformParameter(
      "trim_equal", .names(Axes.allCases), in: .part,
      "Cut as much off opposite edges: left and right, top and bottom, or both"
    ) { $1(&$0.transform.selection.trimEqual) },
  ]
}
