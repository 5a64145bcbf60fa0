// JobAnswer: what a worker answered, believed only as far as it can be checked.

import ImagingWire
import Model

/// Reads the answer to a job. A worker decodes strangers' bytes, so its answer counts for no more than a network's.
enum JobAnswer {
  /// Checks an answer and brings its picture into memory.
  ///
  /// - Throws: `WireError` for an answer that no worker of ours gives: of another job, without a sealed file of just
  ///   so many bytes as it says, or of more than `limit`. Descriptors that came with it are closed.
  static func read(
    _ received: consuming WireMessage, for id: UInt64, atMost limit: Int
  ) throws(WireError) -> Result<ProcessedImage, ImageError> {
    var message = received
    switch try AnswerMessage(decoding: message.bytes) {
    case .ready:
      throw .malformed("ready twice")
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
        return .success(ProcessedImage(bytes: try ImageBytes(contentsOf: region), result))
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
      timings: result.timings)
  }
}
