// Orientation: the eight EXIF orientations, and how an image stored in each is made upright.

import CVips
import Model

/// The orientation of a stored image, as in tag 0x0112 of EXIF 2.32. The value 1 is upright;
/// missing and unknown values count as 1.
struct Orientation: Equatable {
  /// The tag's value, 1–8.
  let tag: Int

  /// The upright orientation.
  static let up = Orientation(tag: 1)

  init(tag: Int?) { self.tag = tag.flatMap { (1...8).contains($0) ? $0 : nil } ?? 1 }

  /// Whether width and height are swapped when the image is made upright.
  var swapsSides: Bool { tag >= 5 }

  /// Whether making the image upright reads the rows in another order than stored. Such an image
  /// must be in memory, because a sequential decoder fails for images larger than libvips's
  /// buffers.
  var needsRandomAccess: Bool { tag >= 3 }

  /// The clockwise rotation in quarter turns, applied before mirroring.
  private var quarters: Int {
    switch tag {
    case 3, 4: 2
    case 5, 6: 1
    case 7, 8: 3
    default: 0
    }
  }

  /// Whether the image is mirrored horizontally.
  private var isMirrored: Bool { [2, 4, 5, 7].contains(tag) }

  /// The tags by quarter turns, without and with mirroring.
  private static let tags = [[1, 6, 3, 8], [2, 5, 4, 7]]

  /// The orientation that turns an upright image back into the stored one. Only the two quarter
  /// turns are not self-inverse.
  private var inverse: Orientation {
    switch tag {
    case 6: Orientation(tag: 8)
    case 8: Orientation(tag: 6)
    default: self
    }
  }

  /// Returns this orientation followed by a rotation and then a flip.
  ///
  /// A rotation after a mirroring equals the opposite rotation before it. A vertical flip equals a
  /// half turn followed by a horizontal flip.
  func turned(by rotation: Rotation, flip: Flip) -> Orientation {
    let standsOnHead = flip == .vertical || flip == .both
    let more = rotation.rawValue / 90 + (standsOnHead ? 2 : 0)
    let quarters = (self.quarters + (isMirrored ? 4 - more % 4 : more)) % 4
    let isMirroredAgain = flip == .horizontal || flip == .vertical
    return Orientation(tag: Self.tags[isMirrored == isMirroredAgain ? 0 : 1][quarters])
  }

  /// Returns the stored area of an area of the upright image.
  ///
  /// - Parameters:
  ///   - area: The area in the upright image.
  ///   - size: The size of the upright image.
  func stored(_ area: PixelArea, of size: PixelSize) -> PixelArea {
    let x = isMirrored ? size.width - area.x - area.size.width : area.x
    let right = size.width - x - area.size.width
    let bottom = size.height - area.y - area.size.height
    return switch quarters {
    case 1: PixelArea(x: area.y, y: right, size: area.size.turned)
    case 2: PixelArea(x: right, y: bottom, size: area.size)
    case 3: PixelArea(x: bottom, y: x, size: area.size.turned)
    default: PixelArea(x: x, y: area.y, size: area.size)
    }
  }

  /// Returns the upright area of an area of the stored image: the inverse of `stored(_:of:)`.
  ///
  /// - Parameters:
  ///   - area: The area in the stored image.
  ///   - size: The size of the stored image.
  func upright(_ area: PixelArea, of size: PixelSize) -> PixelArea {
    inverse.stored(area, of: size)
  }

  /// Rotates and mirrors an image to make it upright.
  func apply(to image: consuming Image) throws(ImageError) -> Image {
    if needsRandomAccess { image = try image.inMemory() }
    if quarters > 0 {
      // VIPS_ANGLE_D0, D90, D180 and D270 are 0 to 3.
      let angle = VipsAngle(UInt32(quarters))
      image = try image.made("turn") { pictor_vips_rot($0, $1, angle) }
    }
    if isMirrored {
      image = try image.made("mirror") { pictor_vips_flip($0, $1, VIPS_DIRECTION_HORIZONTAL) }
    }
    return image
  }
}
