// EncodedImage: a result's encoded bytes, in memory owned by GLib, with its properties.

import CVips
import Model

/// Bytes allocated by GLib and freed with this value.
struct GLibBytes: ~Copyable {
  private let start: UnsafeMutableRawPointer
  /// The number of bytes.
  private(set) var count: Int

  /// Runs a libvips encoder and takes ownership of the memory it allocates.
  init(
    _ stage: StaticString,
    _ encode: (UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<Int>) -> CInt
  ) throws(ImageError) {
    var start: UnsafeMutableRawPointer?
    var count = 0
    guard encode(&start, &count) == 0, let start else { throw VipsLibrary.failure(in: stage) }
    (self.start, self.count) = (start, count)
  }

  /// Copies bytes that no encoder produced; at least one byte.
  init(copying bytes: [UInt8]) throws(ImageError) {
    try self.init("copy") { start, count in
      start.pointee = g_memdup2(bytes, gsize(bytes.count))
      count.pointee = bytes.count
      return 0
    }
  }

  deinit { g_free(start) }

  /// Truncates the bytes to the count that the closure returns; the closure may modify them.
  mutating func shorten(_ body: (UnsafeMutableRawBufferPointer) -> Int) {
    count = min(count, body(UnsafeMutableRawBufferPointer(start: start, count: count)))
  }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result
  {
    try body(UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// An encoded image and the sole owner of its bytes.
public struct EncodedImage: ~Copyable {
  private let bytes: GLibBytes
  /// The format of the bytes.
  public let format: ImageFormat
  /// The size of one frame, in pixels.
  public let size: PixelSize
  /// The number of frames, 1 for a still. libwebp merges equal consecutive frames into one with the
  /// sum of their delays.
  public let frames: Int
  /// Pixels per point of the result, for `Content-DPR`. Lower than requested if the source had too
  /// few pixels or the result was scaled down.
  public let density: Double
  /// The size in pixels before downsizing; set if a pixel limit or `maxbytes` reduced the result.
  public let scaledDownFrom: PixelSize?
  /// The lossy quality, 1–100, if `maxbytes` determined it.
  public let quality: Int?
  /// The first 128 bits of the bytes' SHA-256, in lower-case hexadecimal.
  public let digest: String
  /// The durations of `decode`, `transform` and `encode`.
  public let timings: Timings
  /// Whether the source has damage that its decoder tolerated.
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

  /// Creates a result that is not a rendered image: a description or a placeholder.
  init(
    bytes: consuming GLibBytes, format: ImageFormat, size: PixelSize, density: Double,
    timings: Timings
  ) {
    (self.format, self.size, frames, self.density) = (format, size, 1, density)
    (scaledDownFrom, quality, self.timings) = (nil, nil, timings)
    digest = bytes.withUnsafeBytes(Self.digest)
    self.bytes = bytes
  }

  /// The number of bytes.
  public var count: Int { bytes.count }

  /// Calls a closure with the bytes, which are valid during the call.
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
