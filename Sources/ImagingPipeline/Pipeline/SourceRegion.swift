// SourceRegion: which part of a source is used, and how it is turned, in stored and in upright pixels.

import Model

/// A part of a source as the request wants it: turned as the header and then the request say, then cropped, then trimmed.
/// Everything after it, sizes and limits too, knows this part only.
struct SourceRegion: Equatable {
  /// How the stored image is turned in all.
  let orientation: Orientation
  /// Size of the whole image as turned.
  let whole: PixelSize
  /// The part in that image.
  let area: PixelArea

  private init(orientation: Orientation, whole: PixelSize, area: PixelArea) {
    (self.orientation, self.whole, self.area) = (orientation, whole, area)
  }

  /// What is used before anything was trimmed.
  ///
  /// - Throws: `ImageError.invalidParameter` for a `crop` outside of the image. What only sticks out is cut off.
  init(of header: SourceHeader, for transform: Transform) throws(ImageError) {
    orientation = header.orientation.turned(by: transform.rotation, flip: transform.flip)
    whole = orientation.swapsSides ? header.size.turned : header.size
    guard let crop = transform.crop else {
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

  /// Size of the part as it will be seen, which `w`, `h` and `scale` count from.
  var size: PixelSize { area.size }
  /// The part in the stored image.
  var stored: PixelArea { orientation.stored(area, of: whole) }
  /// Whether it is all of the source.
  var isWhole: Bool { area.size == whole }

  /// A part of it.
  ///
  /// - Parameter area: In pixels of the stored image.
  func narrowed(toStored area: PixelArea) -> SourceRegion {
    let stored = orientation.swapsSides ? whole.turned : whole
    return SourceRegion(
      orientation: orientation, whole: whole, area: orientation.upright(area, of: stored))
  }

  /// The stored pixel that is the upper left one as the part will be seen.
  var storedCorner: (x: Int, y: Int) {
    let pixel = PixelArea(x: area.x, y: area.y, size: PixelSize(width: 1, height: 1))
    let stored = orientation.stored(pixel, of: whole)
    return (stored.x, stored.y)
  }
}

/// A part of a decoded image, in its pixels: of an image that was made smaller while decoding, edges may lie within one.
struct Window: Equatable {
  var x: Double
  var y: Double
  var width: Double
  var height: Double

  /// All of an image.
  init(_ size: PixelSize) {
    (x, y, width, height) = (0, 0, Double(size.width), Double(size.height))
  }

  /// A part of the stored image in one that has so many pixels for each of the stored one's.
  init(_ area: PixelArea, times scale: (x: Double, y: Double)) {
    (x, y) = (Double(area.x) * scale.x, Double(area.y) * scale.y)
    (width, height) = (Double(area.size.width) * scale.x, Double(area.size.height) * scale.y)
  }

  /// The pixels that it touches, of an image of this size.
  func covered(of size: PixelSize) -> PixelArea {
    // What a product of numbers like 1/3 has too much is no pixel.
    let slack = 1e-6
    let left = min(Int(x + slack), size.width - 1)
    let top = min(Int(y + slack), size.height - 1)
    let right = min(max(left + 1, Int((x + width - slack).rounded(.up))), size.width)
    let bottom = min(max(top + 1, Int((y + height - slack).rounded(.up))), size.height)
    return PixelArea(x: left, y: top, size: PixelSize(width: right - left, height: bottom - top))
  }

  /// The whole pixels next to it.
  func rounded(of size: PixelSize) -> PixelArea {
    let left = min(Int(x.rounded()), size.width - 1)
    let top = min(Int(y.rounded()), size.height - 1)
    let right = min(max(left + 1, Int((x + width).rounded())), size.width)
    let bottom = min(max(top + 1, Int((y + height).rounded())), size.height)
    return PixelArea(x: left, y: top, size: PixelSize(width: right - left, height: bottom - top))
  }

  /// Whether it is the same but for a hundredth of a pixel.
  func isClose(to other: Window) -> Bool {
    abs(x - other.x) < 0.01 && abs(y - other.y) < 0.01 && abs(width - other.width) < 0.01
      && abs(height - other.height) < 0.01
  }

  /// It, in a part of the image.
  func within(_ area: PixelArea) -> Window {
    var result = self
    (result.x, result.y) = (max(0, x - Double(area.x)), max(0, y - Double(area.y)))
    return result
  }
}
