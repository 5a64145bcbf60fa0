// JobAnswer: what a worker answered, believed only as far as it can be checked.

import ImagingWire
import Model

/// Reads the answer to a job. A worker decodes strangers' bytes, so its answer counts for no more than a network's.
enum JobAnswer {
  /// Checks an answer and brings its image into memory.
  ///
  /// A worker that says it made something else than was asked for has failed, whatever the source is like.
  ///
  /// - Returns: `nil` where the job takes long, and was not done for that.
  /// - Throws: `WireError` for an answer that no worker of ours gives: of another job, without a sealed file of just
  ///   so many bytes as it says, or of more than `limit`. Descriptors that came with it are closed.
  static func read(
    _ received: consuming WireMessage, for id: UInt64, _ transform: Transform, atMost limit: Int
  ) throws(WireError) -> Result<ProcessedImage, ImageError>? {
    var message = received
    switch try AnswerMessage(decoding: message.bytes) {
    case .ready:
      throw .malformed("ready twice")
    case .takesLong(let answered):
      guard answered == id else { throw .malformed("another job's answer") }
      guard message.takeDescriptor() == nil else { throw .malformed("nothing, with a file") }
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
      do throws(ImageError) {
        let bytes = try ImageBytes(contentsOf: region)
        if let fault = result.fault(in: bytes, of: transform) {
          return .failure(.internal(detail: "a worker's result: \(fault)"))
        }
        return .success(ProcessedImage(bytes: bytes, result))
      } catch {
        return .failure(error)
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
  /// What differs from what was asked for, or from what is said of the bytes; `nil`: nothing.
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
  /// Most pixels of a side of the box; rounded up where the result is rounded to the nearest.
  fileprivate func pixels(_ points: Int?) -> Int {
    points.map { max(1, Int((Double($0) * (scale ?? 1)).rounded(.up))) } ?? .max
  }
}
