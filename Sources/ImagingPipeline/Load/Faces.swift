// Faces: finds the faces of a source, and the part of an image that shows them.

import CFaces
import Core

/// A search for frontal faces in a small grey copy of a source's first or requested frame.
///
/// The copy depends on the source alone, so that each variant of a source has the same faces,
/// whether its own job or an earlier one has found them.
struct FaceSearch {
  private let header: SourceHeader
  /// The whole upright image.
  private let whole: SourceRegion
  private let geometry: Geometry
  private let loader: Loader

  /// The pixels of the copy, 516×387 for a photograph. A face has about 75×75 and more.
  private static let pixels = 200_000.0
  /// How often each side of a small source is enlarged at most, to find smaller faces.
  private static let maximumScale = 2.0
  /// The processor time of the search, without the decoding (docs/performance.md).
  static let seconds = 0.02

  /// Prepares the search.
  init(
    of source: UnsafeRawBufferPointer, _ header: SourceHeader, limits: ImagingLimits
  ) throws(ImageError) {
    self.header = header
    whole = try SourceRegion(of: header, for: Transform())
    var sizing = Sizing()
    let scale = min((Self.pixels / whole.size.area).squareRoot(), Self.maximumScale)
    sizing.width = max(1, Int(Double(whole.size.width) * scale))
    sizing.height = max(1, Int(Double(whole.size.height) * scale))
    (sizing.fit, sizing.enlarge) = (.fill, true)
    geometry = Geometry(
      of: whole.size, isVector: false, sizing: sizing, density: 1, frames: 1,
      limits: Geometry.Limits(limits, for: .image))
    loader = Loader(
      source: source, header: header, part: whole, maximumPixels: limits.maximumPixels,
      threads: limits.maximumThreads)
  }

  /// The share of the pixels that are decoded.
  var shareDecoded: Double { loader.shareDecoded(for: geometry) }

  /// Returns the faces in pixels of the stored image, the largest first. A vector has none.
  func faces() throws(ImageError) -> [PixelArea] {
    let size = geometry.image
    guard header.format != .svg, min(size.width, size.height) >= 64 else { return [] }
    var boxes = [pictor_face](repeating: pictor_face(), count: RenderReport.maximumFaces)
    let count = pictor_find_faces(
      try grey(), CInt(size.width), CInt(size.height), &boxes, CInt(boxes.count))
    guard count >= 0 else { throw .outOfMemory(detail: "faces") }
    let across = Double(whole.size.width) / Double(size.width)
    let down = Double(whole.size.height) / Double(size.height)
    return boxes.prefix(Int(count)).map { box in
      let area = PixelArea(
        x: Int(box.x), y: Int(box.y),
        size: PixelSize(width: Int(box.width), height: Int(box.height)))
      let window = Window(area, times: (across, down))
      return whole.orientation.stored(window.covered(of: whole.size), of: whole.size)
    }.sorted { $0.size.pixels > $1.size.pixels }
  }

  /// Returns the lightness of the copy's pixels (BT.601), as if all were opaque.
  private func grey() throws(ImageError) -> [UInt8] {
    let loaded = try loader.load(for: geometry, frames: 1)
    var image = try loaded.image.readyForResize()
    image = try image.resized(to: loader.storedTarget(for: geometry), showing: loaded.window)
    image = try whole.orientation.apply(to: image.inSRGB(from: header.codePoints))
    let bands = image.bands
    let rows = try PixelRows(of: image)
    var grey: [UInt8] = []
    for y in 0..<geometry.image.height {
      var pixel = try rows.row(y)
      for _ in 0..<geometry.image.width {
        let red = Int(pixel[0])
        let (green, blue) = bands < 3 ? (red, red) : (Int(pixel[1]), Int(pixel[2]))
        grey.append(UInt8((77 * red + 150 * green + 29 * blue) >> 8))
        pixel += bands
      }
    }
    return grey
  }
}

extension SourceRegion {
  /// Returns the areas of faces in the upright image. What exceeds it is cut off: the server may
  /// have them from another worker.
  private func upright(_ faces: [PixelArea]) -> [Window] {
    let stored = orientation.swapsSides ? whole.turned : whole
    return faces.map { face in
      let inside = Window(face, times: (1, 1)).covered(of: stored)
      return Window(orientation.upright(inside, of: stored), times: (1, 1))
    }
  }

  /// Returns the part around all faces, with a margin in shares of each face's sides.
  func around(_ faces: [PixelArea], margin: Double) -> SourceRegion {
    var region = self
    let boxes = upright(faces).map { face in
      var box = face
      (box.x, box.y) = (face.x - margin * face.width, face.y - margin * face.height)
      (box.width, box.height) = (face.width * (1 + 2 * margin), face.height * (1 + 2 * margin))
      return box
    }
    guard let first = boxes.first else { return self }
    region.area = boxes.reduce(first) { $0.joined(to: $1) }.covered(of: whole)
    return region
  }

  /// Returns the point around which the shown part has as many faces as fit, the largest first;
  /// `nil` without a face in the region. It is the middle on an axis that is not cut.
  func focalPoint(of faces: [PixelArea], for geometry: Geometry) -> FocalPoint? {
    let (image, part) = (geometry.image, geometry.shown)
    let (width, height) = (Double(size.width), Double(size.height))
    var shown: Window?
    for face in upright(faces) {
      let x = face.x + face.width / 2 - Double(area.x)
      let y = face.y + face.height / 2 - Double(area.y)
      guard x >= 0, x < width, y >= 0, y < height else { continue }
      let both = shown?.joined(to: face) ?? face
      let fits =
        both.width * Double(image.width) <= width * Double(part.width)
        && both.height * Double(image.height) <= height * Double(part.height)
      if shown == nil || fits { shown = both }
    }
    return shown.map { shown in
      let x = (shown.x + shown.width / 2 - Double(area.x)) / width
      let y = (shown.y + shown.height / 2 - Double(area.y)) / height
      return FocalPoint(
        x: part.width == image.width ? 0.5 : x, y: part.height == image.height ? 0.5 : y)
    }
  }
}

extension Window {
  fileprivate func joined(to other: Window) -> Window {
    var all = self
    (all.x, all.y) = (min(x, other.x), min(y, other.y))
    all.width = max(x + width, other.x + other.width) - all.x
    all.height = max(y + height, other.y + other.height) - all.y
    return all
  }
}
