// Orientation: the eight EXIF orientations, and how a picture stored in each is made upright.

import CVips
import Model

/// How a stored picture lies, as tag 0x0112 of EXIF 2.32 has it: 1 is upright, missing and unknown values count as
/// that.
struct Orientation: Equatable {
  /// The tag's value, 1–8.
  let tag: Int

  /// Upright.
  static let up = Orientation(tag: 1)

  init(tag: Int?) { self.tag = tag.flatMap { (1...8).contains($0) ? $0 : nil } ?? 1 }

  /// Whether width and height are exchanged when the picture is made upright.
  var swapsSides: Bool { tag >= 5 }

  /// Whether making it upright reads the rows in another order than they are stored. Such a picture has to be in
  /// memory: a decoder that gives rows from top to bottom fails, and only on pictures larger than libvips's buffers.
  var needsRandomAccess: Bool { tag >= 3 }

  /// The turn, clockwise; done before the mirroring.
  private var angle: VipsAngle? {
    switch tag {
    case 3, 4: VIPS_ANGLE_D180
    case 5, 6: VIPS_ANGLE_D90
    case 7, 8: VIPS_ANGLE_D270
    default: nil
    }
  }

  /// Makes a picture upright.
  func apply(to picture: consuming Picture) throws(ImageError) -> Picture {
    if needsRandomAccess { picture = try picture.inMemory() }
    if let angle { picture = try picture.made("turn") { pictor_vips_rot($0, $1, angle) } }
    if [2, 4, 5, 7].contains(tag) {
      picture = try picture.made("mirror") { pictor_vips_flip($0, $1, VIPS_DIRECTION_HORIZONTAL) }
    }
    return picture
  }
}
