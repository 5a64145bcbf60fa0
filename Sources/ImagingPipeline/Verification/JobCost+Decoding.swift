// JobCost+Decoding: estimates the processor time of decoding a source.

import ImagingWire
import Model

extension JobCost {
  /// Estimates the decoding of a source: nanoseconds for each pixel and each byte, measured with 25
  /// megapixels of noise and 144 of one colour. Bytes tell busy pixels from flat ones.
  ///
  /// - Parameters:
  ///   - frames: How many frames of an animation are decoded.
  ///   - scans: The scans of a JPEG.
  ///   - share: The share of the pixels that the decoder makes, at most 1; 0 for what every transform takes.
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
      // Every code is read, and few pixels are made. A progressive or arithmetic one has all coefficients first, and
      // libjpeg decodes CMYK.
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
