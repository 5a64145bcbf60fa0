// Orientation: the eight EXIF orientations, and how an image stored in each is made upright.

import CVips
import Model

/// How a stored image lies, as tag 0x0112 of EXIF 2.32 has it: 1 is upright, missing and unknown values count as
/// that.
struct Orientation: Equatable {
  /// The tag's value, 1–8.
  let tag: Int

  /// Upright.
  static let up = Orientation(tag: 1)

  init(tag: Int?) { self.tag = tag.flatMap { (1...8).contains($0) ? $0 : nil } ?? 1 }

  /// Whether width and height are exchanged when the image is made upright.
  var swapsSides: Bool { tag >= 5 }

  /// Whether making it upright reads the rows in another order than they are stored. Such an image has to be in
  /// memory: a decoder that gives rows from top to bottom fails, and only on images larger than libvips's buffers.
  var needsRandomAccess: Bool { tag >= 3 }

  /// Quarters of a turn, clockwise; done before the mirroring.
  private var quarters: Int {
    switch tag {
    case 3, 4: 2
    case 5, 6: 1
    case 7, 8: 3
    default: 0
    }
  }

  /// Whether left and right are exchanged.
  private var isMirrored: Bool { [2, 4, 5, 7].contains(tag) }

  /// Tags by quarters of a turn, without and with the mirroring.
  private static let tags = [[1, 6, 3, 8], [2, 5, 4, 7]]

  /// What makes an image that was made upright lie as it was stored. Only two quarter turns are not their own.
  private var inverse: Orientation {
    switch tag {
    case 6: Orientation(tag: 8)
    case 8: Orientation(tag: 6)
    default: self
    }
  }

  /// It, with a turn and then a mirroring on top.
  ///
  /// A mirroring turns what was turned before it the other way; one from top to bottom is one from left to right of what
  /// stands on its head.
  func turned(by rotation: Rotation, flip: Flip) -> Orientation {
    let standsOnHead = flip == .vertical || flip == .both
    let more = rotation.rawValue / 90 + (standsOnHead ? 2 : 0)
    let quarters = (self.quarters + (isMirrored ? 4 - more % 4 : more)) % 4
    let isMirroredAgain = flip == .horizontal || flip == .vertical
    return Orientation(tag: Self.tags[isMirrored == isMirroredAgain ? 0 : 1][quarters])
  }

  /// Where a part of the image as it will be seen lies in the stored one.
  ///
  /// - Parameters:
  ///   - area: In the upright image.
  ///   - size: Of the upright image.
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

  /// Where a part of the stored image lies in it as it will be seen: the reverse of `stored(_:of:)`.
  ///
  /// - Parameters:
  ///   - area: In the stored image.
  ///   - size: Of the stored image.
  func upright(_ area: PixelArea, of size: PixelSize) -> PixelArea {
    inverse.stored(area, of: size)
  }

  /// Makes an image upright.
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
