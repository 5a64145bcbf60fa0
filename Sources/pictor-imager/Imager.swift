// Imager: the life of a worker, from its start by the server to the end of its connection.

import Glibc
import ImagingPipeline
import ImagingWire
import Model

/// A worker process: takes one job at a time from the server and answers it.
enum Imager {
  /// Runs until the server goes away; the result is the exit status.
  static func run(arguments: [String]) -> CInt {
    guard let options = ImagerOptions(arguments: Array(arguments.dropFirst())) else {
      complain("started by pictor, not by hand: \(ImagerOptions.usage)")
      return 64  // EX_USAGE
    }
    do {
      try ProcessSetup.apply(options)
      let socket = WireSocket(owning: OwnedDescriptor(owning: WireSocket.workerDescriptor))
      let pipeline = try Pipeline()
      try socket.send(AnswerMessage.ready.encoded())
      while true {
        try answer(socket.receive(), on: socket, with: pipeline)
      }
    } catch WireError.closed {
      // The server is gone, or has no more use for this worker.
      return 0
    } catch {
      complain((error as? ImageError).map { $0.logDetail ?? $0.code } ?? "\(error)")
      return 1
    }
  }

  private static func answer(
    _ received: consuming WireMessage, on socket: borrowing WireSocket, with pipeline: Pipeline
  ) throws(WireError) {
    var message = received
    let job = try JobMessage(decoding: message.bytes)
    guard let file = message.takeDescriptor() else { throw .malformed("a job without a source") }
    let image: EncodedImage
    do throws(ImageError) {
      let source = try SourceMapping(of: file, offset: job.offset, count: job.count)
      image = try pipeline.process(
        source.bytes, transform: job.transform, density: job.density, limits: job.limits)
    } catch {
      return try socket.send(AnswerMessage.failure(id: job.id, error).encoded())
    }
    let result: OwnedDescriptor
    let count = image.withUnsafeBytes(\.count)
    do throws(WireError) {
      result = try SealedFile.make(of: image)
    } catch {
      let failure = ImageError.internal(detail: "a result of \(count) bytes: \(error)")
      return try socket.send(AnswerMessage.failure(id: job.id, failure).encoded())
    }
    let answer = ResultMessage(
      id: job.id, format: image.format, size: image.size, frames: image.frames,
      density: image.density, scaledDownFrom: image.scaledDownFrom, digest: image.digest,
      timings: image.timings, byteCount: count)
    try socket.send(AnswerMessage.result(answer).encoded(), passing: result.value)
  }

  /// A last word, which the server finds in the log's line on this worker's end.
  private static func complain(_ text: String) {
    var line = "pictor-imager: \(text)\n"
    line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

extension SealedFile {
  /// Seals a picture; typed errors do not pass through `withUnsafeBytes`, which knows no types of errors.
  fileprivate static func make(of image: borrowing EncodedImage) throws(WireError)
    -> OwnedDescriptor
  {
    var file: OwnedDescriptor?
    var failure = WireError.closed
    image.withUnsafeBytes { bytes in
      do throws(WireError) { file = try make(of: bytes) } catch { failure = error }
    }
    guard let made = file.take() else { throw failure }
    return made
  }
}
