// EncodedImage: the encoded bytes of a result, with their report and their check.

import CVips
import Core

/// Bytes that an encoder allocated by GLib or malloc(3), freed with this value.
struct GLibBytes: ~Copyable {
  private let start: UnsafeMutableRawPointer
  /// The number of bytes.
  let count: Int

  /// Runs a libvips encoder and takes ownership of the memory it allocates.
  init(
    _ stage: StaticString,
    encode: (UnsafeMutablePointer<UnsafeMutableRawPointer?>, UnsafeMutablePointer<Int>) -> CInt
  ) throws(ImageError) {
    var start: UnsafeMutableRawPointer?
    var count = 0
    guard encode(&start, &count) == 0, let start else { throw VipsLibrary.failure(in: stage) }
    self.start = start
    self.count = count
  }

  /// Copies bytes; at least one.
  init(copying bytes: [UInt8]) throws(ImageError) {
    try self.init("copy") { start, count in
      start.pointee = g_memdup2(bytes, gsize(bytes.count))
      count.pointee = bytes.count
      return 0
    }
  }

  /// Takes over memory from malloc(3), which g_free frees as well (since GLib 2.46).
  init(owning start: UnsafeMutableRawPointer, count: Int) {
    self.start = start
    self.count = count
  }

  deinit { g_free(start) }

  func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result
  {
    try body(UnsafeRawBufferPointer(start: start, count: count))
  }
}

/// The result of the pipeline and the sole owner of its bytes.
public struct EncodedImage: ~Copyable {
  private let bytes: GLibBytes
  /// What the bytes are, with their digest and the durations of the stages.
  public internal(set) var report: RenderReport

  /// Takes an encoded image. The encoder may have reduced its size for `maxbytes`.
  init(
    _ encoded: consuming Encoded, format: ImageFormat, frames: Int, droppedFrames: Int,
    geometry: Geometry, timings: Timings
  ) {
    let size = encoded.size
    let image = RenderedImage(
      format: format, size: size, frames: frames, density: geometry.density(at: size),
      scaledDownFrom: size == geometry.canvas
        ? geometry.scaledDownFrom : geometry.scaledDownFrom ?? geometry.canvas,
      quality: encoded.quality, droppedFrames: droppedFrames)
    self.init(bytes: encoded.bytes, content: .image(image), timings: timings)
  }

  /// Takes encoded bytes.
  init(bytes: consuming GLibBytes, content: VariantContent, timings: Timings) {
    report = RenderReport(
      content: content, digest: bytes.withUnsafeBytes(Self.digest), timings: timings)
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

extension Encoded {
  /// Reopens the header of the encoded image and compares format and size with the expected ones.
  ///
  /// heifsave of libvips 8.14.1 reports success when libaom runs out of memory, and leaves a
  /// container without an image.
  ///
  /// - Parameter isEncodedHere: Whether the bytes are of `Output.encode`, and not the source's own.
  /// - Throws: `ImageError.internal`, because the source is not at fault.
  func check(as format: ImageFormat, isEncodedHere: Bool = false) throws(ImageError) {
    var fault: String?
    bytes.withUnsafeBytes { bytes in
      do throws(ImageError) {
        guard FormatSigns.format(of: bytes) == format else {
          fault = "no such file"
          return
        }
        let found = try Self.size(bytes, as: format, isEncodedHere: isEncodedHere)
        if found != size { fault = "\(found) instead of \(size)" }
      } catch {
        fault = error.logDetail ?? error.code
      }
    }
    if let fault {
      throw .internal(detail: "encoded \(format.rawValue) of \(bytes.count) bytes: \(fault)")
    }
  }

  private static func size(
    _ bytes: UnsafeRawBufferPointer, as format: ImageFormat, isEncodedHere: Bool
  ) throws(ImageError) -> PixelSize {
    // libjpeg has written it. Opening it by libvips takes 2 % of a miss of 800×600 (perf), mostly
    // for objects.
    if isEncodedHere, format == .jpeg, let size = JPEGProcess(of: bytes)?.size { return size }
    return try Loader.describe(bytes, as: format, failOn: .none).size
  }
}
