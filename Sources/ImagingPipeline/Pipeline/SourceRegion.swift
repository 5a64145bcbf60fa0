// SourceRegion: the used part of a source and its orientation, in stored and in upright pixels.

import Model

/// The requested part of a source: turned by the header and then by the request, then cropped, then
/// trimmed. All later stages, including sizes and limits, see only this region.
struct SourceRegion: Equatable {
  /// The combined orientation of header and request.
  let orientation: Orientation
  /// The size of the whole upright image.
  let whole: PixelSize
  /// The used area in the upright image.
  let area: PixelArea

  private init(orientation: Orientation, whole: PixelSize, area: PixelArea) {
    self.orientation = orientation
    self.whole = whole
    self.area = area
  }

  /// Creates the region before trimming. The part of a `crop` that exceeds the image is cut off.
  ///
  /// - Throws: `ImageError.invalidParameter` for a `crop` entirely outside the image.
  init(of header: SourceHeader, for transform: Transform) throws(ImageError) {
    orientation = header.orientation.turned(
      by: transform.selection.rotation, flip: transform.selection.flip)
    whole = orientation.swapsSides ? header.size.turned : header.size
    guard let crop = transform.selection.crop else {
      area = PixelArea(x: 0, y: 0, size: whole)
      return
    }
    guard crop.x < whole.width, crop.y < whole.height else {
      throw .invalidParameter(
        name: "crop", value: crop.description, allowed: "a part of the image, which is \(whole)")
    }
    area = PixelArea(
      x: crop.x, y: crop.y,
      size: PixelSize(
        width: min(crop.size.width, whole.width - crop.x),
        height: min(crop.size.height, whole.height - crop.y)))
  }

  /// The size of the upright region, which `w`, `h` and `scale` refer to.
  var size: PixelSize { area.size }
  /// The region in pixels of the stored image.
  var stored: PixelArea { orientation.stored(area, of: whole) }
  /// Whether the region covers the whole source.
  var isWhole: Bool { area.size == whole }

  /// Returns this region narrowed to an area.
  ///
  /// - Parameter area: The area in pixels of the stored image.
  func narrowed(toStored area: PixelArea) -> SourceRegion {
    let stored = orientation.swapsSides ? whole.turned : whole
    return SourceRegion(
      orientation: orientation, whole: whole, area: orientation.upright(area, of: stored))
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
    x = 0
    y = 0
    width = Double(size.width)
    height = Double(size.height)
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
    let left = min(Int(x + slack), size.width - 1)
    let top = min(Int(y + slack), size.height - 1)
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
