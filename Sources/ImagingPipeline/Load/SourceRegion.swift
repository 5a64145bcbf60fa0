// SourceRegion: the used part of a source and its orientation, in stored and in upright pixels.

import CVips
import Core

/// The requested part of a source: turned by the header and then by the request, then cropped, then
/// trimmed. All later stages, including sizes and limits, see only this region.
struct SourceRegion: Equatable {
  /// The combined orientation of header and request.
  let orientation: Orientation
  /// The size of the whole upright image.
  let whole: PixelSize
  /// The used area in the upright image.
  var area: PixelArea

  /// Creates the region before trimming. The part of a `crop` that exceeds the image is cut off.
  ///
  /// - Throws: `ImageError.invalidParameter` for a `crop` entirely outside the image.
  init(of header: SourceHeader, for transform: Transform) throws(ImageError) {
    let stated = transform.selection.isUpright ? header.orientation : .up
    orientation = stated.turned(
      by: transform.selection.rotation, flip: transform.selection.flip)
    whole = orientation.swapsSides ? header.size.turned : header.size
    guard let crop = transform.selection.crop else {
      area = PixelArea(x: 0, y: 0, size: whole)
      return
    }
    guard let area = crop.area(in: whole) else {
      throw .invalidParameter(
        name: "crop", value: crop.text, allowed: "a part of the image, which is \(whole)")
    }
    self.area = area
  }

  /// The size of the upright region, which `w`, `h` and `scale` refer to.
  var size: PixelSize { area.size }
  /// The region in pixels of the stored image.
  var stored: PixelArea { orientation.stored(area, of: whole) }
  /// Whether the region covers the whole source.
  var isWhole: Bool { area.size == whole }

  /// Returns this region narrowed to an area.
  ///
  /// - Parameters:
  ///   - area: The area in pixels of the stored image.
  ///   - axes: The axes on which opposite edges lose the same.
  func narrowed(toStored area: PixelArea, equally axes: Axes? = nil) -> SourceRegion {
    let stored = orientation.swapsSides ? whole.turned : whole
    let found = orientation.upright(area, of: stored)
    var (x, width) = (found.x, found.size.width)
    var (y, height) = (found.y, found.size.height)
    if axes == .horizontal || axes == .both {
      let cut = min(x - self.area.x, self.area.x + size.width - x - width)
      (x, width) = (self.area.x + cut, size.width - 2 * cut)
    }
    if axes == .vertical || axes == .both {
      let cut = min(y - self.area.y, self.area.y + size.height - y - height)
      (y, height) = (self.area.y + cut, size.height - 2 * cut)
    }
    var region = self
    region.area = PixelArea(x: x, y: y, size: PixelSize(width: width, height: height))
    return region
  }

  /// The stored pixel that is at the upper left of the upright region.
  var storedCorner: (x: Int, y: Int) {
    let pixel = PixelArea(x: area.x, y: area.y, size: PixelSize(width: 1, height: 1))
    let stored = orientation.stored(pixel, of: whole)
    return (stored.x, stored.y)
  }
}

/// An area of a decoded image with fractional edges: after shrink-on-load, the edges of a region
/// may lie within pixels.
struct Window: Equatable {
  var x: Double
  var y: Double
  var width: Double
  var height: Double

  /// Creates a window that covers a whole image.
  init(_ size: PixelSize) {
    self.init(PixelArea(x: 0, y: 0, size: size), times: (1, 1))
  }

  /// Creates the window of a stored area in an image scaled by `scale`.
  init(_ area: PixelArea, times scale: (x: Double, y: Double)) {
    x = Double(area.x) * scale.x
    y = Double(area.y) * scale.y
    width = Double(area.size.width) * scale.x
    height = Double(area.size.height) * scale.y
  }

  /// Returns the smallest pixel area that contains the window, in an image of this size.
  func covered(of size: PixelSize) -> PixelArea {
    // Tolerates the rounding error of products with factors such as 1/3.
    let slack = 1e-6
    let left = max(0, min(Int(x + slack), size.width - 1))
    let top = max(0, min(Int(y + slack), size.height - 1))
    let right = min(max(left + 1, Int((x + width - slack).rounded(.up))), size.width)
    let bottom = min(max(top + 1, Int((y + height - slack).rounded(.up))), size.height)
    return PixelArea(x: left, y: top, size: PixelSize(width: right - left, height: bottom - top))
  }

  /// Returns the window rounded to whole pixels, in an image of this size.
  func rounded(of size: PixelSize) -> PixelArea {
    let left = min(Int(x.rounded()), size.width - 1)
    let top = min(Int(y.rounded()), size.height - 1)
    let right = min(max(left + 1, Int((x + width).rounded())), size.width)
    let bottom = min(max(top + 1, Int((y + height).rounded())), size.height)
    return PixelArea(x: left, y: top, size: PixelSize(width: right - left, height: bottom - top))
  }

  /// Returns whether all values differ by less than a hundredth of a pixel.
  func isClose(to other: Window) -> Bool {
    abs(x - other.x) < 0.01 && abs(y - other.y) < 0.01 && abs(width - other.width) < 0.01
      && abs(height - other.height) < 0.01
  }

  /// Returns the window relative to the origin of an area.
  func within(_ area: PixelArea) -> Window {
    var result = self
    result.x = max(0, x - Double(area.x))
    result.y = max(0, y - Double(area.y))
    return result
  }
}

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
      image = try image.made("turn", by: "rot", "angle=d\(90 * quarters)")
    }
    if isMirrored {
      image = try image.made("mirror", by: "flip", "direction=horizontal")
    }
    return image
  }
}
