// JobCost: estimates the processor time and the memory of a job from headers, before decoding.

import Core

/// An estimate by formats and sizes. The limits of a worker stop jobs that take more.
public struct JobCost: Hashable, Sendable {
  /// The estimated processor time.
  public internal(set) var seconds = 0.0
  /// The estimated memory that the job needs besides the worker's own, in bytes.
  public internal(set) var bytes = 0
  /// Whether a vector may take long. What it takes is hardly known before it is drawn.
  private var mayDrawLong = false
  /// The part of `seconds` that encodes the frames of an animation, which takes long for ordinary
  /// ones, too, or that recompresses, which gives way to others.
  var secondsOfFrames = 0.0
  /// Whether the estimate is a bound for every transform of the source.
  var isOfSource = true

  /// Jobs with a higher estimate are expensive: others may overtake them.
  private static let maximumQuickSeconds = 1.0
  /// Vectors with a higher estimate are expensive: they may take ten times as long.
  private static let maximumQuickDrawing = 0.1
  /// How much lower the memory of decoding may be than its estimate.
  private static let leastShareOfDecoding = 0.85
  /// The same with the encoding, which may begin when the decoder has returned its memory.
  private static let leastShare = 0.6

  /// Creates an estimate of nothing.
  public init() {}

  /// Whether the job is expensive in time or memory. It then waits for its turn and for room.
  public func isExpensive(_ limits: ImagingLimits) -> Bool {
    mayDrawLong || seconds > Self.maximumQuickSeconds || bytes > limits.maximumQuickBytes
  }

  /// Estimates the recompression of a JPEG or PNG.
  init(recompressing size: PixelSize, as format: ImageFormat) {
    let pixels = Double(size.pixels)
    isOfSource = false
    seconds = pixels * (format == .jpeg ? 60 : 1_500) / 1e9
    secondsOfFrames = seconds
    // The coefficients of three components with all samples; up to six copies of the rows.
    bytes = Int(min(8e6 + pixels * (format == .jpeg ? 8 : 24), 1e15))
  }

  /// Adds the drawing of a vector. It refuses none: that takes a measurement.
  ///
  /// - Parameters:
  ///   - header: The vector's; other sources add nothing.
  ///   - scale: How large it is drawn.
  mutating func add(drawing vector: VectorLimits?, _ header: SourceHeader, scale: Double) {
    guard let vector else { return }
    isOfSource = false
    let seconds = vector.seconds(drawing: header.size.area * scale * scale)
    mayDrawLong = mayDrawLong || seconds > Self.maximumQuickDrawing
  }

  /// Checks the estimate against the limits.
  ///
  /// - Throws: `ImageError.tooCostly` above a limit, within `.ofVariant` if other variants of the
  ///   source may cost less, or if memory is missing, which the operator gives.
  func check(_ limits: ImagingLimits) throws(ImageError) {
    try check(seconds - secondsOfFrames, atMost: limits.maximumSecondsOfPixels)
    try check(seconds, atMost: limits.maximumSeconds)
    let share = isOfSource ? Self.leastShareOfDecoding : Self.leastShare
    guard Double(bytes) * share <= Double(limits.maximumBytes) else {
      throw .ofVariant(
        .tooCostly(
          reason: "it would take about \(bytes >> 20) MiB of memory; a worker has "
            + "\(limits.maximumBytes >> 20)", key: ImagingLimits.memoryKey))
    }
  }

  private func check(_ seconds: Double, atMost limit: Double) throws(ImageError) {
    guard seconds > limit else { return }
    let error = ImageError.tooCostly(
      reason: "it would take about \(Int(seconds.rounded())) s of processor time; at most "
        + "\(Int(limit)) are allowed", key: ImagingLimits.timeKey)
    throw isOfSource ? error : .ofVariant(error)
  }
}

extension JobCost {
  /// Estimates the decoding of a source: nanoseconds for each pixel and each byte, measured with 25
  /// megapixels of noise and 144 of one colour. Bytes tell busy pixels from flat ones.
  ///
  /// - Parameters:
  ///   - frames: How many frames of an animation are decoded.
  ///   - share: The share of the pixels that the decoder makes, at most 1; 0 for what every
  ///     transform takes.
  init(
    decoding source: UnsafeRawBufferPointer, _ header: SourceHeader, frames: Int, scans: Int = 1,
    share: Double
  ) {
    // The cost of a vector depends on its drawn size.
    guard header.format != .svg else { return }
    isOfSource = !header.isAnimation || frames == 1
    let part = header.isAnimation ? Double(frames) / Double(header.pages) : 1
    let pixels = Double(header.size.pixels) * Double(header.isAnimation ? frames : 1)
    let bytes = Double(source.count) * part
    let depth = Double(header.pixelBytes)
    let nanoseconds: Double
    switch header.format {
    case .jpeg:
      // Every code is read, and few pixels are made. A progressive or arithmetic one has all
      // coefficients first, and libjpeg decodes CMYK.
      let process = JPEGProcess(of: source)
      let isPlain = process.map { $0.kind < 2 && $0.coefficientBytes == 0 } ?? false
      let isArithmetic = process.map { $0.kind > 8 } ?? false
      let (code, scan) = isArithmetic ? (110.0, 0.25) : (38, 0.1)
      nanoseconds =
        isPlain
        ? bytes * (depth > 3 ? 20 : 8) + pixels * (0.3 + 7.5 * share)
        : bytes * code + pixels * (scan * Double(scans) + 13 * share)
    case .png:
      nanoseconds =
        bytes * 3.5 + pixels * (3 * depth + (Self.isInterlaced(source) ? 5 : 0))
    // All blocks are walked over for any part.
    case .gif: nanoseconds = Double(source.count) * 6 + bytes * 12 + pixels * 8.5
    // Frames are decoded whole, and composited.
    case .webp where header.isAnimation:
      nanoseconds = min(bytes * 60, pixels * 15) + pixels * 20
    case .webp:
      nanoseconds =
        min(bytes * 60, pixels * 15) + pixels * ((header.hasAlpha ? 3 : 1.5) + 9 * share)
    // One with alpha is decoded whole, as two images.
    case .avif where header.hasAlpha, .heic where header.hasAlpha:
      nanoseconds = min(bytes, pixels) * 100 + pixels * (40 + 14 * share)
    case .avif: nanoseconds = min(bytes * 120, pixels * 25) + pixels * (2.5 + 14 * share)
    case .heic: nanoseconds = min(bytes, pixels) * 100 + pixels * (5 + 14 * share)
    case .tiff: nanoseconds = pixels * (5 + 2.5 * min(depth, 3))
    default:
      let cost = header.format.traits.decoding
      nanoseconds = min(bytes, pixels) * cost.byte + pixels * cost.pixel
    }
    seconds = nanoseconds / 1e9
  }

  /// Adds a second decoding of the source, to find its margins.
  mutating func add(trimming header: SourceHeader, by decoding: JobCost) {
    isOfSource = false
    // The margins of a vector are found in a small drawing.
    seconds += decoding.seconds + (header.format == .svg ? 0 : 3e-9 * Double(header.size.pixels))
  }

  /// Adds the decoding of a watermark, and its compositing onto each frame.
  mutating func add(watermark: JobCost, on size: PixelSize, frames: Int) {
    isOfSource = false
    seconds += watermark.seconds + 25e-9 * Double(size.pixels) * Double(frames)
  }
}

extension SourceHeader {
  /// Returns the frames that are decoded for a result: those before a later one, too.
  func decodedFrames(for transform: Transform) -> Int {
    let frames = frames(for: transform)
    return isAnimation ? max(frames, min((transform.selection.frame ?? 0) + 1, pages)) : frames
  }
}

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
    if effects.brightness != 1 || effects.saturation != 1 || effects.hue != 0 { nanoseconds += 75 }
    if effects.sepia > 0 { nanoseconds += 30 }
    if effects.gamma != 1 { nanoseconds += 15 }
    if effects.contrast != 1 || effects.isNegative { nanoseconds += 8 }
    if effects.pixelate != nil { nanoseconds += 6 }
    if transform.sizing.angle != 0 {
      nanoseconds += 60
      bytes += 4 * geometry.frame.pixels
    }
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
    let source: UnsafeRawBufferPointer
    let header: SourceHeader
    let geometry: Geometry
    let frames: Int
    let transform: Transform

    /// Whether each frame has the colours of its source's palette.
    fileprivate var keepsPalettes: Bool {
      header.format == .gif && geometry.image == header.size && transform.effects == Effects()
        && transform.watermark == nil && transform.sizing.angle == 0
    }
  }

  /// Adds the estimate for encoding.
  mutating func add(_ encoding: Encoding, as format: ImageFormat) {
    isOfSource = false
    let frames = Double(encoding.frames)
    let pixels = Double(encoding.geometry.canvas.pixels) * frames
    // How busy the pixels are, 0 for a flat image to 1.
    let busy = Self.detail(of: encoding.source, encoding.header)
    var nanoseconds: Double
    switch format {
    case .jpeg: nanoseconds = pixels * (encoding.transform.output.isProgressive ? 25 : 8)
    case .gif where encoding.keepsPalettes: nanoseconds = pixels * (85 + 40 * busy)
    // libimagequant finds the colours of each frame.
    case .gif: nanoseconds = frames * 10e6 + pixels * (60 + 160 * busy)
    default:
      let cost = format.traits.encoding
      nanoseconds = pixels * (cost.flat + cost.busy * busy)
    }
    let output = encoding.transform.output
    if output.isLossless, format != .jpeg, ImageFormat.lossy.contains(format) {
      nanoseconds *= Self.losslessFactor
    } else if output.chroma == .full, format == .avif {
      nanoseconds *= 2
    }
    if output.maxBytes != nil { nanoseconds *= Self.attempts }
    seconds += nanoseconds / 1e9
    if encoding.frames > 1 { secondsOfFrames += nanoseconds / 1e9 }
  }

  /// How much longer a lossless encoder takes at most: WebP's (1800×1200: 1.5 s and 0.25 s).
  private static let losslessFactor = 6.0
  /// The cost of a `maxbytes` search in encodes of the full size: at most eight encodes, most of
  /// them of smaller images.
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

extension JobCost {
  /// Checks what libvips allocates to read the header: for a WebP 4 bytes for each pixel of its
  /// canvas.
  ///
  /// - Returns: the cost of the whole source if this alone is expensive; `nil` otherwise.
  /// - Throws: `ImageError.tooManyPixels`; `.tooCostly` within `.ofVariant`.
  static func ofExpensiveOpening(
    _ source: UnsafeRawBufferPointer, as format: ImageFormat, _ limits: ImagingLimits
  ) throws(ImageError) -> JobCost? {
    guard format == .webp, let pixels = pixelsOfWebP(source) else { return nil }
    guard pixels <= limits.maximumPixels else {
      throw .tooManyPixels(pixels: pixels, limit: limits.maximumPixels)
    }
    var cost = JobCost()
    cost.bytes = 4 * pixels
    try cost.check(limits)
    guard cost.isExpensive(limits) else { return nil }
    cost.bytes = bytesOfAnyJob + Int(Double(pixels) * bytesOfWebP)
    return cost
  }

  /// Returns the pixels of a WebP's canvas, from its first chunk (RFC 9649, 2.5 to 2.7); `nil` if
  /// that is unknown.
  private static func pixelsOfWebP(_ source: UnsafeRawBufferPointer) -> Int? {
    guard source.count >= 30 else { return nil }
    func number(at offset: Int) -> Int {
      Int(source.loadUnaligned(fromByteOffset: offset, as: UInt32.self).littleEndian)
    }
    switch String(decoding: source[12..<16], as: UTF8.self) {
    case "VP8X": return (1 + number(at: 24) & 0xff_ffff) * (1 + number(at: 26) >> 8)
    case "VP8 ": return (number(at: 26) & 0x3fff) * (number(at: 26) >> 16 & 0x3fff)
    case "VP8L": return (1 + number(at: 21) & 0x3fff) * (1 + number(at: 21) >> 14 & 0x3fff)
    default: return nil
    }
  }

  /// The maximum rows of a source that are held, in any format.
  private static let heldRows = 1_024
  /// Memory of every job.
  private static let bytesOfAnyJob = 8 << 20
  /// Bytes of a pixel of a WebP that is not shrunk on load, with what its result takes.
  private static let bytesOfWebP = 13.0

  /// Bytes of a pixel of a WebP that is decoded to planes: one and two quarters, and the decoder's
  /// rows.
  private static let bytesOfPlanes = 2.0

  /// Adds the memory for decoding.
  ///
  /// - Parameters:
  ///   - factor: How often each side of the source is shrunk while it is decoded, at least 1.
  ///   - spare: What may be used to save time, in bytes: beyond it, a PNG is decoded in strips.
  mutating func add(
    decoding source: UnsafeRawBufferPointer, _ header: SourceHeader, shrunkBy factor: Double = 1,
    spare: Int = 0
  ) {
    let pixels = Double(header.size.pixels)
    var needed = Double(Self.bytesOfAnyJob)
    // One sample of 8 bits is 1.
    let depth = Double(header.pixelBytes)
    switch header.format {
    case .jpeg:
      needed += pixels * (JPEGProcess(of: source)?.coefficientBytes ?? 0)
    case .png where Self.isInterlaced(source):
      // Complete only after its last pass.
      needed += pixels * depth
    case .gif: needed += pixels * (header.isAnimation ? 8 : 4.2)
    case .webp:
      // Whole planes where it is lossy and opaque; else what libwebp shrinks.
      needed += pixels * max(10 / (factor * factor) + 0.5, Self.bytesOfPlanes)
    case .jp2:
      // Tiles are decoded a row at a time, with 32 bits a sample.
      let stream = HEIFBox.first("jp2c", in: ByteReader(source))?.bytes ?? source
      let height = CodestreamKind(of: stream)?.tileHeight ?? header.size.height
      needed += Double(header.size.width * min(height, header.size.height)) * 4 * depth
    case .png:
      if let memory = PNGPixels.memory(of: source, header), Int(needed) + memory <= spare {
        bytes += Int(needed) + memory
        return
      }
    default: needed += pixels * header.format.traits.decodingBytes * depth
    }
    let rows = min(Self.heldRows, header.size.height * (header.isAnimation ? header.pages : 1))
    needed += Double(header.size.width) * Double(rows) * depth
    bytes += Int(min(needed, 1e15))
  }

  /// Whether a PNG is interlaced (ISO/IEC 15948, 11.2.2).
  static func isInterlaced(_ source: UnsafeRawBufferPointer) -> Bool {
    source.count > 28 && source[28] == 1
  }

  /// Adds the memory for encoding.
  mutating func add(bytesOf size: PixelSize, frames: Int, as format: ImageFormat, hasAlpha: Bool) {
    let pixels = Double(size.pixels) * Double(frames) * (hasAlpha ? 4 / 3 : 1)
    bytes += Int(min(pixels * format.traits.encodingBytes, 1e15))
    if format == .png, size.pixels <= PNGEncoder.maximumPixels {
      bytes += size.pixels * Self.bytesOfPalette
    }
  }

  /// Bytes of a pixel for a PNG with a palette: its indices, compressed, in a file, and that file
  /// for libvips.
  private static let bytesOfPalette = 4
}
