// ComingImages: images that are sent while they come in.

import CMicrohttpd
import Model
import Platform
import Telemetry

extension RequestContext {
  /// Bytes of an image whose length nobody knows that its client has time for.
  private static let presumedLength = 64 << 20

  /// Sends an image as it comes in; the connection is cut where its rest does not come.
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
        // libmicrohttpd's own time-out begins anew with each byte that a client takes.
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

/// The body of such an answer.
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

  /// Nothing came for as long as a request may take.
  func mayWaitOn() -> Bool { false }

  func abandoned() {
    _ = observation.withLock { $0.take() }
    coming.end()
  }
}
