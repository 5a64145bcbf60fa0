// ComingImages: sends images to clients while they are still being received.

import CMicrohttpd
import Model
import Platform
import Telemetry

extension RequestContext {
  /// The length that the reading deadline assumes for an image of unknown length, in bytes.
  private static let presumedLength = 64 << 20

  /// Sends an image while it is being received. Aborts the connection if the origin closes early.
  func answer(with coming: StreamingDelivery, to exchange: SuspendedRequest) -> MHD_Result {
    let body = StreamingAnswer(coming)
    guard case .success(let request)? = client.target?.request else {
      body.abandoned()
      handler.operationKeys.end(exchange)
      return refuse(.internal(detail: "a delivery without a request"))
    }
    let microseconds = client.elapsedMicroseconds
    let head = imageHead(
      coming.info, of: request, coming.cacheStatus, Timings(), microseconds: microseconds)
    let stream = BodyStream(
      body, on: connection, of: client, handler: handler,
      patience: handler.configuration.requestTimeout.wholeMilliseconds)
    guard handler.operationKeys.pass(exchange, to: stream, on: connection) else {
      body.abandoned()
      return refuse(.superseded)
    }
    do throws(ImageError) {
      let length = coming.body.expected
      let response = try Response(
        head: head, style: handler.configuration.headStyle, stream: stream, length: length)
      handler.figures.missLatency.record(microseconds: microseconds)
      handler.figures.origins.add("origin")
      client.streaming = Streaming(
        stream: stream, cacheStatus: coming.cacheStatus.headerValue)
      let result = queue(response, status: 200, bytes: length ?? 0)
      if length == nil {
        // Needed because libmicrohttpd's own time-out restarts with each byte that the client
        // reads.
        let configuration = handler.configuration
        client.watch.deadline =
          Clock.coarseMilliseconds() + configuration.requestTimeout.wholeMilliseconds
          + handler.answerTimeout + Self.presumedLength * 1_000 / configuration.minimumReadRate
      }
      return result
    } catch {
      body.abandoned()
      handler.operationKeys.end(stream)
      return refuse(error)
    }
  }
}

/// The body of a response that is still being received.
private final class StreamingAnswer: StreamedResponse {
  private let coming: StreamingDelivery
  private let observation = Lock<Observation?>(nil)

  let endsWithServer = false
  let failure = ImageError.sourceIncomplete(detail: "it was being sent already")

  init(_ coming: StreamingDelivery) { self.coming = coming }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    coming.body.read(at: position, into: buffer)
  }

  func whenReadable(_ wake: @escaping @Sendable () -> Void) {
    let observation = coming.body.observe(wake)
    self.observation.withLock { $0 = observation }
  }

  /// Returns `false`: the wait already took as long as a request may.
  func mayWaitOn() -> Bool { false }

  func abandoned() {
    _ = observation.withLock { $0.take() }
    coming.end()
  }
}
