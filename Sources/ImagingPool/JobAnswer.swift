// JobAnswer: validates a worker's answer to a job.

import CLinux
import Core
import Glibc

/// The answer to a job. Workers decode untrusted input, so their answers are validated like network
/// input.
enum JobAnswer {
  /// The job is done or has failed.
  case ended(Result<ProcessedImage, ImageError>)
  /// The worker did not begin the job because it is expensive. `bytes` is its estimated memory.
  case takesLong(bytes: Int)

  /// Validates an answer and puts its image into `storage`. A result that does not match the job is
  /// a failure of the worker, not of the source. Blocks on the disk if the image does not stay in
  /// memory.
  ///
  /// - Parameter results: The worker's file of results. The worker may change it at any time, so it
  ///   is copied first.
  /// - Throws: `WireError` for an answer that a correct worker never sends: for another job,
  ///   without a result of the stated length, or with more than `limit` bytes.
  static func read(
    _ received: consuming WireMessage, for id: UInt64, transform: Transform,
    sourceBytes: Int = 0, source: FileRegion? = nil, limits: ImagingLimits? = nil,
    from results: borrowing OwnedDescriptor, atMost limit: Int, into storage: VariantStorage
  ) throws(WireError) -> JobAnswer {
    switch try AnswerMessage(decoding: received.bytes) {
    case .ready:
      throw .malformed("ready twice")
    case .takesLong(let answered, let bytes):
      guard answered == id else { throw .malformed("another job's answer") }
      // The pipeline refuses what it estimates far above the memory of a worker.
      guard bytes / 2 <= limits?.maximumBytes ?? .max else {
        throw .malformed("an estimate of \(bytes) bytes")
      }
      return .takesLong(bytes: bytes)
    case .failure(let answered, let error):
      guard answered == id else { throw .malformed("another job's answer") }
      return .ended(.failure(error))
    case .result(let result):
      guard result.id == id else { throw .malformed("another job's answer") }
      if let fault = result.report.excess(over: limits, of: source, for: transform) {
        throw .malformed("a result of \(fault)")
      }
      let plausible = result.report.maximumBytes(of: transform) + sourceBytes
      guard result.byteCount <= min(limit, plausible) else {
        throw .malformed("a result of \(result.byteCount) bytes")
      }
      var status = stat()
      guard fstat(results.value, &status) == 0, Int(status.st_size) == result.byteCount else {
        throw .malformed("\(status.st_size) bytes for a result of \(result.byteCount)")
      }
      let copy = pictor_linux_duplicate_above(results.value, 0)
      guard copy >= 0 else { throw .system(call: "fcntl", code: errno) }
      let region = FileRegion(owning: copy, count: result.byteCount)
      do throws(ImageError) {
        let body = try storage.body(of: region)
        let beginning = try beginning(of: body)
        if let fault = result.report.fault(in: beginning, of: transform) {
          return .ended(.failure(.internal(detail: "a worker's result: \(fault)")))
        }
        return .ended(.success(ProcessedImage(body: body, report: result.report)))
      } catch {
        return .ended(.failure(error))
      }
    }
  }

  /// Returns the bytes that tell the format.
  private static func beginning(of body: Variant.Body) throws(ImageError) -> ImageBytes {
    switch body {
    case .memory(let bytes): return bytes
    case .file(let file):
      do throws(SystemError) {
        return try ImageBytes(copyingUpTo: FormatSigns.limit, of: file)
      } catch {
        throw .internal(detail: "cannot read a result: \(error)")
      }
    }
  }
}

extension RenderReport {
  /// Bytes of a result beside its pixels and what it keeps of its source.
  private static var slack: Int { 1 << 20 }
  /// More bytes than any encoder takes for a pixel: four channels of 16 bits, and what does not
  /// compress.
  private static var bytesPerPixel: Int { 10 }

  /// More bytes than the image can have, apart from what it keeps of its source.
  fileprivate func maximumBytes(of transform: Transform) -> Int {
    guard case .image(let image) = content else { return Self.slack }
    // No product overflows: a side is at most 10 million.
    let pixels = image.size.width * image.size.height
    let frames = min(image.frames, max(transform.sizing.limitBytes / 4 / pixels, 1))
    return pixels * frames * Self.bytesPerPixel + Self.slack
  }

  /// Returns what of the size no limit allows, or is larger than the source; `nil` for nothing.
  fileprivate func excess(
    over limits: ImagingLimits?, of source: FileRegion?, for transform: Transform
  ) -> String? {
    guard case .image(let image) = content else { return nil }
    let size = image.size
    if let limits {
      // No product overflows: a side is at most 10 million, and 2^31 frames of 2^31 pixels are
      // fewer than 2^63.
      guard size.isWithin(limits.maximumResultPixels) else { return "\(size)" }
      let isStill = image.frames == 1
      guard isStill || image.frames <= limits.maximumFrames,
        isStill || size.isWithin(limits.maximumPixels / image.frames)
      else { return "\(image.frames) frames of \(size)" }
    }
    // A padded result has the size of its box, which is checked, and an enlarged one any.
    let sizing = transform.sizing
    guard transform.product == .image, !sizing.enlarge, !sizing.hasLeastSide,
      sizing.fit != .contain, !sizing.isExtended, let source,
      let own = SourceHead.size(of: source)
    else { return nil }
    guard max(size.width, size.height) <= max(own.width, own.height),
      size.pixels <= own.pixels, image.frames == 1
    else { return "\(image.frames) × \(size) for a source of \(own)" }
    return nil
  }

  /// Returns how the report contradicts its bytes or the transform; `nil` if it does not.
  fileprivate func fault(in bytes: ImageBytes, of transform: Transform) -> String? {
    guard case .image(let image) = content else {
      let isJSON = bytes.withUnsafeBytes { $0.first == UInt8(ascii: "{") }
      guard isJSON else { return "no JSON as a description" }
      return transform.product == .image ? "a description instead of an image" : nil
    }
    let found = bytes.withUnsafeBytes { FormatSigns.format(of: $0) }
    guard found == image.format else {
      return "\(found?.rawValue ?? "no image") instead of \(image.format.rawValue)"
    }
    // A source that is passed has its own format and size.
    guard !image.mayBePassed(transform.output.passed) else { return nil }
    guard image.format.isOutput else { return "\(image.format.rawValue)" }
    guard transform.product == .image else { return nil }
    if let format = transform.output.format, format != image.format {
      return "\(image.format.rawValue) instead of \(format.rawValue)"
    }
    if let exact = transform.sizing.sizeOfAnySource, exact != image.scaledDownFrom ?? image.size {
      return "\(image.size) instead of \(exact)"
    }
    return transform.sizing.allows(image.size) ? nil : "\(image.size) does not fit"
  }
}

extension PixelSize {
  /// Whether a result that is scaled down to this many pixels may have this size: its sides are
  /// rounded down, and up to 1.
  fileprivate func isWithin(_ pixels: Int) -> Bool {
    // Divides instead of multiplying, because the product of untrusted sides could overflow.
    min(width, height) == 1 || height <= pixels / width
  }
}

extension RenderedImage {
  /// Whether a source of these kinds can be such an image.
  fileprivate func mayBePassed(_ kinds: PassedKinds) -> Bool {
    kinds.contains(.all) || kinds.contains(.vector) && format == .svg
      || kinds.contains(.animated) && frames > 1
  }
}

extension Sizing {
  /// Returns whether an image of this size is within the box and the limit of bytes.
  fileprivate func allows(_ size: PixelSize) -> Bool {
    guard size.isWithin(limitBytes / 4) else { return false }
    guard fit != .outside, extend != .ratio, !adapts, angle == 0 else { return true }
    return size.width - pixels(padding.left) - pixels(padding.right) <= pixels(width)
      && size.height - pixels(padding.top) - pixels(padding.bottom) <= pixels(height)
  }

  /// The size of the result if it is the same for every source, without the limits; otherwise
  /// `nil`. Finds mistakes. A worker that was taken over may claim that a limit reduced its result.
  fileprivate var sizeOfAnySource: PixelSize? {
    guard width != nil, height != nil, limitSide == nil, !adapts,
      fit == .contain || enlarge && (fit == .cover || fit == .fill)
    else { return nil }
    let most = Int.max / 8
    let geometry = Geometry(
      of: PixelSize(width: 1, height: 1), isVector: true, sizing: self, density: 1, frames: 1,
      limits: Geometry.Limits(sourcePixels: most, resultPixels: most))
    return geometry.scaledDownFrom ?? geometry.canvas
  }

  /// Returns the maximum pixels of a side. Rounds up, because the pipeline may round to the nearest
  /// pixel.
  private func pixels(_ points: Int?) -> Int {
    points.map { $0 == 0 ? 0 : max(1, Int((Double($0) * (scale ?? 1)).rounded(.up))) } ?? .max
  }
}
