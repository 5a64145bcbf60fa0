// JobAnswer: validates a worker's answer to a job.

import ImagingWire
import Model
import Platform

/// Reads the answer to a job. Workers decode untrusted input, so their answers are validated like
/// network input.
enum JobAnswer {
  /// Validates an answer and loads its image into memory. A result that does not match the job is a
  /// failure of the worker, not of the source.
  ///
  /// - Returns: `nil` if the worker did not begin the job because it is expensive.
  /// - Throws: `WireError` for an answer that a correct worker never sends: for another job, without a sealed file of
  ///   the stated length, or with more than `limit` bytes. Its descriptors are closed.
  static func read(
    _ received: consuming WireMessage, for id: UInt64, _ transform: Transform, atMost limit: Int
  ) throws(WireError) -> Result<ProcessedImage, ImageError>? {
    var message = received
    switch try AnswerMessage(decoding: message.bytes) {
    case .ready:
      throw .malformed("ready twice")
    case .takesLong(let answered):
      guard answered == id else { throw .malformed("another job's answer") }
      guard message.takeDescriptor() == nil else { throw .malformed("a refusal with a file") }
      return nil
    case .failure(let answered, let error):
      guard answered == id else { throw .malformed("another job's answer") }
      guard message.takeDescriptor() == nil else { throw .malformed("a failure with a file") }
      return .failure(error)
    case .result(let result):
      guard result.id == id else { throw .malformed("another job's answer") }
      guard let file = message.takeDescriptor() else { throw .malformed("a result without a file") }
      guard result.byteCount <= limit else {
        throw .malformed("a result of \(result.byteCount) bytes")
      }
      try SealedFile.check(file, count: result.byteCount)
      let region = FileRegion(owning: file.release(), count: result.byteCount)
      do throws(SystemError) {
        let bytes = try ImageBytes(contentsOf: region)
        if let fault = result.fault(in: bytes, of: transform) {
          return .failure(.internal(detail: "a worker's result: \(fault)"))
        }
        return .success(ProcessedImage(bytes: bytes, result))
      } catch {
        let count = result.byteCount
        return .failure(.internal(detail: "cannot read a result of \(count) bytes: \(error)"))
      }
    }
  }
}

extension ProcessedImage {
  fileprivate init(bytes: ImageBytes, _ result: ResultMessage) {
    self.init(
      bytes: bytes, format: result.format, size: result.size, frames: result.frames,
      density: result.density, scaledDownFrom: result.scaledDownFrom,
      quality: result.quality, digest: result.digest,
      timings: result.timings, isDamaged: result.isDamaged)
  }
}

extension ResultMessage {
  /// Returns how the result contradicts its bytes or the transform; `nil` if it does not.
  fileprivate func fault(in bytes: ImageBytes, of transform: Transform) -> String? {
    let isJSON = format == .json
    let found = bytes.withUnsafeBytes { bytes in
      isJSON && bytes.first == UInt8(ascii: "{") ? .json : FormatSigns.format(of: bytes)
    }
    guard found == format else {
      return "\(found?.rawValue ?? "no image") instead of \(format.rawValue)"
    }
    guard transform.product == .image else { return nil }
    guard !isJSON, format == transform.format ?? format else {
      return "\(format.rawValue) instead of \(transform.format?.rawValue ?? "an image")"
    }
    let isTooLarge =
      size.height > transform.limitBytes / 4 / size.width
      || transform.fit != .outside
        && (size.width > transform.pixels(transform.width)
          || size.height > transform.pixels(transform.height))
    return isTooLarge ? "\(size) does not fit" : nil
  }
}

extension Transform {
  /// Returns the maximum pixels of a side. Rounds up, because the pipeline may round to the nearest
  /// pixel.
  fileprivate func pixels(_ points: Int?) -> Int {
    points.map { max(1, Int((Double($0) * (scale ?? 1)).rounded(.up))) } ?? .max
  }
}
