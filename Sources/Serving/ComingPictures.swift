// ComingPictures: pictures that are sent while they come in.

import CMicrohttpd
import Model
import Platform
import Telemetry

extension Exchanging {
  /// Sends a picture as it comes in; the connection is cut where its rest does not come.
  func answer(with coming: ComingDelivery) -> MHD_Result {
    let body = ComingPicture(coming)
    guard case .success(let request)? = client.target?.request else {
      body.abandoned()
      return refuse(.internal(detail: "a delivery without a request"))
    }
    let id = RequestID()
    let now = Clock.now()
    let microseconds = client.elapsedMicroseconds
    var timings = Timings()
    timings.total = .microseconds(microseconds)
    var head = ResponseHead(date: now, id: id)
    head.add("Server-Timing", timings.headerValue)
    head.add("Age", "\(coming.info.freshness.age(at: now))")
    head.add(
      info: coming.info, source: request.source, cacheStatus: coming.cacheStatus,
      forwarding: client.target?.forwarding)
    head.addCommon(corsOrigin: handler.configuration.corsOrigin)
    let stream = BodyStream(
      body, on: connection, of: client, handler: handler,
      patience: handler.configuration.requestTimeout.wholeMilliseconds)
    do throws(ImageError) {
      let length = coming.body.expected
      let response = try Response(head: head, stream: stream, length: length)
      handler.figures.missLatency.record(microseconds: microseconds)
      handler.figures.origins.add("origin")
      log(id, 200, length ?? 0, coming.cacheStatus.headerValue, error: nil)
      let result = queue(response, status: 200, bytes: length ?? 0)
      // The transfer has a time-out of its own, and a client that does not read has libmicrohttpd's.
      client.watch.deadline = .max
      return result
    } catch {
      body.abandoned()
      return refuse(error)
    }
  }
}

/// The body of such an answer.
private final class ComingPicture: StreamedBody {
  private let coming: ComingDelivery
  private let observation = Lock<Observation?>(nil)

  let endsWithServer = false

  init(_ coming: ComingDelivery) { self.coming = coming }

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
