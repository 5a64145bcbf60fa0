// Trimming: finds the uniform borders of an image by reading every pixel once.

import Core

/// A search for borders that differ from the upper left pixel by at most a tolerance.
///
/// The search decodes the source at full size, from top to bottom, and the result decodes the
/// source again, because an exact border requires every pixel. The cost is a second decoding and no
/// memory. A corner stored in the last row costs a third decoding.
struct Trimming {
  let source: UnsafeRawBufferPointer
  let header: SourceHeader
  /// The number of frames of the result.
  let frames: Int
  /// The maximum difference of a band, in steps of 255.
  let tolerance: Int
  /// What borders are compared with; `nil`: the upper left pixel.
  var colour: Color?

  /// The maximum pixels that a vector is drawn with: its size says nothing about the cost of
  /// drawing it.
  private static let maximumVectorPixels = 4_000_000.0

  /// Returns the region without its uniform borders. For an animation, the result contains what any
  /// frame needs, and each frame is compared with its own upper left pixel. An entirely uniform
  /// region stays whole.
  ///
  /// - Parameter axes: the axes on which opposite borders lose the same.
  func trimmed(
    _ part: SourceRegion, equally axes: Axes? = nil
  ) throws(ImageError) -> SourceRegion {
    let image = try open()
    let bands = image.bands
    let hasAlpha = image.hasAlpha
    let size = frames > 1 ? header.size : image.size
    guard image.size.height == size.height * frames else {
      throw .undecodable(detail: "\(frames) frames of \(size) make \(image.size)")
    }
    let scale = (
      x: Double(size.width) / Double(header.size.width),
      y: Double(size.height) / Double(header.size.height)
    )
    let area = Window(part.stored, times: scale).covered(of: size)
    let corner = part.storedCorner
    let x = corner.x == part.stored.x ? area.x : area.x + area.size.width - 1
    let y = corner.y == part.stored.y ? area.y : area.y + area.size.height - 1
    var backgrounds: [Background] = []
    if let colour {
      let background = Background(
        colour, bands: bands, hasAlpha: hasAlpha, tolerance: tolerance)
      backgrounds = Array(repeating: background, count: frames)
    } else if y > area.y {
      let rows = try PixelRows(of: try open())
      for frame in 0..<frames {
        let pixel = try rows.row(frame * size.height + y) + x * bands
        backgrounds.append(
          Background(pixel, bands: bands, hasAlpha: hasAlpha, tolerance: tolerance))
      }
    }

    var edges = Edges(area)
    let rows = try PixelRows(of: image)
    for frame in 0..<frames {
      for line in area.y..<area.y + area.size.height {
        let row = try rows.row(frame * size.height + line)
        if backgrounds.count == frame {
          backgrounds.append(
            Background(row + x * bands, bands: bands, hasAlpha: hasAlpha, tolerance: tolerance))
        }
        edges.look(at: row, line: line, on: backgrounds[frame])
      }
    }
    guard let found = edges.area else { return part }
    return part.narrowed(
      toStored: Self.unscaled(found, by: scale, within: part.stored), equally: axes)
  }

  /// Returns the scale that a vector is drawn at; 1 for other formats.
  static func scale(of header: SourceHeader) -> Double { header.scale(atMost: maximumVectorPixels) }

  /// Opens all requested frames in sRGB, not yet turned.
  private func open() throws(ImageError) -> Image {
    let image = try Loader.open(
      source, as: header.format, pages: header.pages(frames: frames), scale: Self.scale(of: header),
      // Damage is found later, when the source is loaded for the result.
      failOn: header.headerFailOn)
    return try image.readyForResize().inSRGB(from: header.codePoints)
  }

  /// Returns the stored pixels that an area of the scaled image shows, clipped to `part`.
  private static func unscaled(
    _ area: PixelArea, by scale: (x: Double, y: Double), within part: PixelArea
  ) -> PixelArea {
    if scale == (1, 1) { return area }
    let left = max(part.x, Int(Double(area.x) / scale.x))
    let top = max(part.y, Int(Double(area.y) / scale.y))
    let right = Int((Double(area.x + area.size.width) / scale.x).rounded(.up))
    let bottom = Int((Double(area.y + area.size.height) / scale.y).rounded(.up))
    return PixelArea(
      x: left, y: top,
      size: PixelSize(
        width: min(right, part.x + part.size.width) - left,
        height: min(bottom, part.y + part.size.height) - top))
  }
}

/// The pixel that borders are compared with. Colours are weighted by their alpha, because a
/// transparent pixel has no visible colour.
private struct Background {
  private let pixel: SIMD4<Int32>
  let bands: Int
  private let hasAlpha: Bool
  private let tolerance: Int32

  init(_ bytes: UnsafePointer<UInt8>, bands: Int, hasAlpha: Bool, tolerance: Int) {
    self.bands = bands
    self.hasAlpha = hasAlpha
    // In 255ths of a step, as colours times alpha are.
    self.tolerance = Int32(tolerance) * 255
    pixel = Self.seen(bytes, bands: bands, hasAlpha: hasAlpha)
  }

  /// The background of a colour; its lightness if the image is grey (BT.709).
  init(_ colour: Color, bands: Int, hasAlpha: Bool, tolerance: Int) {
    var values = SIMD4<Int32>(
      Int32(colour.red), Int32(colour.green), Int32(colour.blue), Int32(colour.alpha))
    if bands < 3 {
      let shares = SIMD3(0.2126, 0.7152, 0.0722)
      let grey = (shares * SIMD3(Double(values.x), Double(values.y), Double(values.z))).sum()
      values = SIMD4(Int32(grey.rounded()), hasAlpha ? values.w : 0, 0, 0)
    } else if !hasAlpha {
      values.w = 0
    }
    self.bands = bands
    self.hasAlpha = hasAlpha
    self.tolerance = Int32(tolerance) * 255
    pixel = Self.weighted(values, bands: bands, hasAlpha: hasAlpha)
  }

  /// Returns whether a pixel does not belong to the border.
  @inline(__always)
  func differs(from bytes: UnsafePointer<UInt8>) -> Bool {
    let difference = Self.seen(bytes, bands: bands, hasAlpha: hasAlpha) &- pixel
    let least = SIMD4<Int32>(repeating: -tolerance)
    return difference.clamped(lowerBound: least, upperBound: 0 &- least) != difference
  }

  @inline(__always)
  private static func seen(
    _ bytes: UnsafePointer<UInt8>, bands: Int, hasAlpha: Bool
  ) -> SIMD4<Int32> {
    var values = SIMD4<Int32>.zero
    for band in 0..<bands { values[band] = Int32(bytes[band]) }
    return weighted(values, bands: bands, hasAlpha: hasAlpha)
  }

  @inline(__always)
  private static func weighted(
    _ values: SIMD4<Int32>, bands: Int, hasAlpha: Bool
  ) -> SIMD4<Int32> {
    guard hasAlpha else { return values &* 255 }
    var factors = SIMD4<Int32>(repeating: values[bands - 1])
    factors[bands - 1] = 255
    return values &* factors
  }
}

/// The smallest area that contains every pixel outside the border.
private struct Edges {
  private let whole: PixelArea
  private var left: Int
  private var right: Int
  private var top = Int.max
  private var bottom = Int.min

  init(_ whole: PixelArea) {
    self.whole = whole
    left = whole.x + whole.size.width
    right = whole.x - 1
  }

  /// The area found; `nil` if every pixel belongs to the border.
  var area: PixelArea? {
    guard top <= bottom else { return nil }
    return PixelArea(
      x: left, y: top, size: PixelSize(width: right - left + 1, height: bottom - top + 1))
  }

  /// Adds a row: scans from the left to the first differing pixel, then from the right down to the
  /// known right edge.
  mutating func look(at row: UnsafePointer<UInt8>, line: Int, on background: Background) {
    let bands = background.bands
    let end = whole.x + whole.size.width
    var x = whole.x
    while x < end && !background.differs(from: row + x &* bands) { x &+= 1 }
    guard x < end else { return }
    left = min(left, x)
    top = min(top, line)
    bottom = max(bottom, line)
    var last = end - 1
    while last > right && !background.differs(from: row + last &* bands) { last &-= 1 }
    right = max(right, last)
  }
}
