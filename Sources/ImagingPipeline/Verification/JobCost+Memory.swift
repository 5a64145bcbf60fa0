// JobCost+Memory: estimates the memory of a job from headers, before decoding.

import ImagingWire
import Model
import Platform

extension JobCost {
  /// Checks what libvips allocates to read the header: for a WebP 4 bytes for each pixel of its canvas.
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

  /// Returns the pixels of a WebP's canvas, from its first chunk (RFC 9649, 2.5 to 2.7); `nil` if that is unknown.
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

  /// Bytes of a pixel of a WebP that is decoded to planes: one and two quarters, and the decoder's rows.
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

  /// Bytes of a pixel for a PNG with a palette: its indices, compressed, in a file, and that file for libvips.
  private static let bytesOfPalette = 4
}
