// JobCost+Encoding: estimates the processor time of effects and encoding.

import ImagingWire
import Model

extension JobCost {
  /// Adds the estimate for the pixels between decoder and encoder: colours, effects, smart crops.
  mutating func add(
    effectsOf transform: Transform, on header: SourceHeader, _ geometry: Geometry, frames: Int
  ) {
    let effects = transform.effects
    var nanoseconds = 0.0
    if !header.profile.isEmpty || header.codePoints != nil { nanoseconds += 37 }
    // CMYK
    if header.format == .jpeg, header.pixelBytes > 3 { nanoseconds += 60 }
    // Pixels with alpha are resized and flattened in floats.
    if header.hasAlpha, header.format != .svg, geometry.image != header.size { nanoseconds += 55 }
    if let sigma = effects.blur { nanoseconds += Self.blur(sigma) }
    if let sigma = effects.sharpen {
      nanoseconds += 90 + 6 * sigma
      // Transparent pixels take blurred colours first.
      if header.hasAlpha { nanoseconds += 30 + Self.blur(sigma) }
    }
    if effects.radius != nil { nanoseconds += 15 }
    if effects.tint != nil { nanoseconds += 6 }
    if effects.isGrayscale { nanoseconds += 17 }
    if effects.brightness != 1 || effects.saturation != 1 { nanoseconds += 75 }
    let pixels = Double(geometry.canvas.pixels) * Double(frames)
    seconds += pixels * nanoseconds / 1e9
    if geometry.isCut, transform.sizing.position.isSmart, transform.sizing.focalPoint == nil {
      seconds += 25e-9 * Double(geometry.image.pixels)
    }
    isOfSource = false
  }

  /// Nanoseconds of a blur for each pixel. A wide one works on a reduced image.
  private static func blur(_ sigma: Double) -> Double { 15 + 40 * min(sigma, 2.5) }

  /// What is encoded.
  struct Encoding {
    /// The size of one frame.
    var size: PixelSize
    var frames: Int
    /// Whether the quality is searched for, which takes several attempts.
    var isSearched = false
    /// How busy the pixels are, 0 for a flat image to 1.
    var detail: Double
    /// Whether each frame has the colours of its source's palette.
    var keepsPalettes = false
    /// Whether a JPEG is progressive.
    var isProgressive = false

    init(
      of source: UnsafeRawBufferPointer, _ header: SourceHeader, _ geometry: Geometry, frames: Int,
      transform: Transform
    ) {
      size = geometry.canvas
      self.frames = frames
      isSearched = transform.output.maxBytes != nil
      detail = JobCost.detail(of: source, header)
      keepsPalettes =
        header.format == .gif && geometry.image == header.size && transform.effects == Effects()
        && transform.watermark == nil
      isProgressive = transform.output.isProgressive
    }
  }

  /// Adds the estimate for encoding.
  mutating func add(_ encoding: Encoding, as format: ImageFormat) {
    isOfSource = false
    let frames = Double(encoding.frames)
    let pixels = Double(encoding.size.pixels) * frames
    let busy = encoding.detail
    var nanoseconds: Double
    switch format {
    case .jpeg: nanoseconds = pixels * (encoding.isProgressive ? 25 : 8)
    case .gif where encoding.keepsPalettes: nanoseconds = pixels * (85 + 40 * busy)
    // libimagequant finds the colours of each frame.
    case .gif: nanoseconds = frames * 10e6 + pixels * (60 + 160 * busy)
    default:
      let cost = format.traits.encoding
      nanoseconds = pixels * (cost.flat + cost.busy * busy)
    }
    if encoding.isSearched { nanoseconds *= Self.attempts }
    seconds += nanoseconds / 1e9
    if encoding.frames > 1 { secondsOfFrames += nanoseconds / 1e9 }
  }

  /// The cost of a `maxbytes` search in encodes of the full size: at most eight encodes, most of them of smaller
  /// images.
  private static let attempts = 5.0
  /// From this number of bytes a pixel on, a source is as busy as a photograph.
  private static let busyBytes = 0.1

  /// Returns how busy the pixels of a source are.
  static func detail(of source: UnsafeRawBufferPointer, _ header: SourceHeader) -> Double {
    // A vector is mostly flat.
    guard header.format != .svg else { return 0 }
    let pixels = Double(header.size.pixels) * Double(header.isAnimation ? header.pages : 1)
    return min(Double(source.count) / max(pixels, 1) / busyBytes, 1)
  }
}

extension Position {
  /// Whether the crop follows the content.
  var isSmart: Bool { self == .entropy || self == .attention }
}
