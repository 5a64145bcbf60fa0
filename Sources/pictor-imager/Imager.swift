// Imager: the main loop of an imaging worker.

import CLinux
import CZeroing
import Core
import Glibc
import ImagingPipeline
import Sandboxing

/// An imaging worker. It takes one job at a time from the server and answers it.
enum Imager {
  /// Runs until the server closes the connection. Returns the exit status.
  static func run(arguments: [String]) -> CInt {
    guard let options = WorkerOptions(arguments: Array(arguments.dropFirst())) else {
      complain("this program is started by pictor: \(WorkerOptions.usage)")
      return 64  // EX_USAGE
    }
    guard pictor_zeroes_memory() != 0 else {
      complain("the libraries of this build do not call its malloc, which zeroes memory")
      return 70  // EX_SOFTWARE
    }
    // Closed last: the server reads the final message when the connection ends.
    let socket = WireSocket(owning: OwnedDescriptor(owning: WireSocket.workerDescriptor))
    var results = MemoryFile(owning: OwnedDescriptor(owning: WireSocket.resultDescriptor))
    do {
      var niceness = try ProcessSetup.apply(options)
      let pipeline = try Pipeline()
      let report = try seal(options.sandbox)
      try socket.send(AnswerMessage.ready(report).encoded())
      while true {
        // After large images most of the process's memory is free. malloc_trim returns it to the
        // system.
        if !socket.hasMessage(within: idleMilliseconds) { pictor_linux_trim_memory() }
        niceness.applyIfAllowed()
        try answer(socket.receive(passed: 2), on: socket, with: pipeline, into: &results)
      }
    } catch WireError.closed {
      // The server has ended, or has discarded this worker.
      return 0
    } catch {
      complain((error as? ImageError).map { $0.logDetail ?? $0.code } ?? "\(error)")
      return 1
    }
  }

  /// Loads all that a job may need, and seals the process.
  private static func seal(_ mode: SandboxMode) throws(SandboxError) -> SandboxReport {
    // Without a sandbox, modules load with the first image that needs them.
    if mode != .off { Pipeline.loadEverything() }
    return try Sandbox.enter(mode, connection: WireSocket.workerDescriptor)
  }

  /// Idle time in milliseconds before free memory is returned. A busy worker keeps it for the next
  /// image.
  private static let idleMilliseconds: CInt = 1_000

  private static func answer(
    _ received: consuming WireMessage, on socket: borrowing WireSocket, with pipeline: Pipeline,
    into results: inout MemoryFile
  ) throws(WireError) {
    var message = received
    let job = try JobMessage(decoding: message.bytes)
    guard let file = message.takeDescriptor() else { throw .malformed("a job without a source") }
    let overlayFile = message.takeDescriptor()
    guard (overlayFile != nil) == (job.overlay != nil) else {
      throw .malformed("a watermark without its file, or the other way round")
    }
    let image: EncodedImage
    var cost = JobCost()
    let admits = { (found: JobCost) in
      cost = found
      return !job.isQuickOnly || !found.isExpensive(job.limits)
    }
    do throws(ImageError) {
      let source = try SourceMapping(of: file, offset: job.offset, count: job.count)
      if job.isRecompression {
        image = try pipeline.recompress(source.bytes, limits: job.limits, admits: admits)
      } else if let overlay = job.overlay, let overlayFile {
        let watermark = try mapping(of: overlayFile, overlay)
        image = try pipeline.process(
          source.bytes, transform: job.transform, density: job.density, limits: job.limits,
          overlay: OverlaySource(
            bytes: watermark.bytes, density: overlay.density, placement: overlay.placement),
          faces: job.faces, admits: admits)
      } else {
        image = try pipeline.process(
          source.bytes, transform: job.transform, density: job.density, limits: job.limits,
          verifies: job.verifies, faces: job.faces, admits: admits)
      }
    } catch .cancelled where job.isQuickOnly {
      return try socket.send(AnswerMessage.takesLong(id: job.id, bytes: cost.bytes).encoded())
    } catch {
      return try socket.send(AnswerMessage.failure(id: job.id, error).encoded())
    }
    let count = image.withUnsafeBytes(\.count)
    do throws(SystemError) {
      try append(image, to: &results)
    } catch {
      let failure = ImageError.internal(detail: "a result of \(count) bytes: \(error)")
      return try socket.send(AnswerMessage.failure(id: job.id, failure).encoded())
    }
    let answer = ResultMessage(id: job.id, report: image.report, byteCount: count)
    try socket.send(AnswerMessage.result(answer).encoded())
  }

  private static func mapping(
    of file: borrowing OwnedDescriptor, _ overlay: OverlayMessage
  ) throws(ImageError) -> SourceMapping {
    do throws(ImageError) {
      return try SourceMapping(of: file, offset: overlay.offset, count: overlay.count)
    } catch {
      throw error.ofWatermark
    }
  }

  /// Copies the image to the file of results, which the server has emptied.
  private static func append(
    _ image: borrowing EncodedImage, to file: inout MemoryFile
  ) throws(SystemError) {
    // `withUnsafeBytes` has no typed throws, so the error is stored.
    var failure: SystemError?
    image.withUnsafeBytes { bytes in
      do throws(SystemError) { try file.append(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
  }

  /// Writes a final message. The server logs it with the end of this worker.
  private static func complain(_ text: String) {
    var line = "pictor-imager: \(text)\n"
    line.withUTF8 { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
