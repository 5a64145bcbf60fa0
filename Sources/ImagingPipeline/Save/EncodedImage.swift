// EncodedImage: a finished image's bytes, in memory that GLib gave and gets back, and what is known about them.

import CVips
import Model

/// Bytes that were allocated by GLib: freed with this value.
struct GLibBytes: ~Copyable {
  private let start: UnsafeMutableRawPointer
  /// How many there are.
  private(set) var count: Int

  /// Runs an encoder of libvips's and takes over what it allocates.
  init(
    _ stage: StaticString,
    _ encode: (UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<Int>) -> CInt
  ) throws(ImageError) {
    var start: UnsafeMutableRawPointer?
    var count = 0
    guard encode(&start, &count) == 0, let start else { throw VipsLibrary.failure(in: stage) }
    (self.start, self.count) = (start, count)
  }

  /// A copy of bytes that no encoder made, at least one.
  init(copying bytes: [UInt8]) throws(ImageError) {
    try self.init("copy") { start, count in
      start.pointee = g_memdup2(bytes, gsize(bytes.count))
      count.pointee = bytes.count
      return 0
    }
  }

  deinit { g_free(start) }

  /// Keeps only so many bytes, as the closure says that may have changed them.
  mutating func shorten(_ body: (UnsafeMutableRawBufferPointer) -> Int) {
    count = min(count, body(UnsafeMutableRawBufferPointer(start: start, count: count)))
  }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result
  {
    try body(UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// An encoded image: the one owner of its bytes.
public struct EncodedImage: ~Copyable {
  private let bytes: GLibBytes
  /// Format of the bytes.
  public let format: ImageFormat
  /// Size in pixels, of one frame.
  public let size: PixelSize
  /// Frames, 1 for a still. libwebp makes one of equal neighbours, which then stays for the sum of their times.
  public let frames: Int
  /// Pixels per point of what was made, for `Content-DPR`: what was asked for, or less where the source had too few
  /// pixels or the result was scaled down.
  public let density: Double
  /// Size in pixels it would have had, where large-image downsizing or `maxbytes` made it smaller.
  public let scaledDownFrom: PixelSize?
  /// Lossy quality, 1–100, where `maxbytes` decided it.
  public let quality: Int?
  /// The first 128 bits of the bytes' SHA-256, in lower-case hexadecimal.
  public let digest: String
  /// `decode`, `transform` and `encode`.
  public let timings: Timings
  /// Whether the source has damage that its decoder got over.
  public internal(set) var isDamaged = false

  init(
    _ encoded: consuming Encoded, format: ImageFormat, frames: Int, geometry: Geometry,
    timings: Timings
  ) {
    self.format = format
    self.frames = frames
    self.timings = timings
    size = encoded.size
    quality = encoded.quality
    density = geometry.density(at: encoded.size)
    scaledDownFrom =
      encoded.size == geometry.canvas
      ? geometry.scaledDownFrom : geometry.scaledDownFrom ?? geometry.canvas
    digest = encoded.bytes.withUnsafeBytes(Self.digest)
    bytes = encoded.bytes
  }

  /// What is made beside images: a description, a placeholder.
  init(
    bytes: consuming GLibBytes, format: ImageFormat, size: PixelSize, density: Double,
    timings: Timings
  ) {
    (self.format, self.size, frames, self.density) = (format, size, 1, density)
    (scaledDownFrom, quality, self.timings) = (nil, nil, timings)
    digest = bytes.withUnsafeBytes(Self.digest)
    self.bytes = bytes
  }

  /// How many bytes there are.
  public var count: Int { bytes.count }

  /// The bytes, for as long as the closure runs.
  public func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
    -> Result
  {
    try bytes.withUnsafeBytes(body)
  }

  private static func digest(of bytes: UnsafeRawBufferPointer) -> String {
    let text = g_compute_checksum_for_data(
      G_CHECKSUM_SHA256, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), gsize(bytes.count))
    defer { g_free(text) }
    return text.map { String(String(cString: $0).prefix(32)) } ?? ""
  }
}
