// RequestContext+Streaming: sends responses whose bodies arrive while they are sent.

import CMicrohttpd
import Core

extension RequestContext {
  /// The length that the reading deadline assumes for an image of unknown length, in bytes.
  private static let presumedLength = 64 << 20
  /// Milliseconds without events after which a comment is sent.
  private static let keepAlive = 15_000

  /// Sends an image while it is being received. Aborts the connection if the origin closes early.
  func stream(_ delivery: StreamingDelivery, for suspended: SuspendedRequest) -> MHD_Result {
    let body = StreamedImage(delivery)
    guard case .success(let request)? = client.target?.request else {
      body.ended()
      handler.supersededRequests.end(suspended)
      return refuse(.internal(detail: "a delivery without a request"))
    }
    let configuration = policy.configuration
    let microseconds = client.elapsedMicroseconds
    let head = imageHead(
      of: delivery.info, timings: Timings(), cacheStatus: delivery.cacheStatus, for: request,
      microseconds: microseconds)
    let stream = BodyStream(
      body, on: connection, of: client, handler: handler,
      maximumWait: configuration.requestTimeout.wholeMilliseconds)
    let operation = handler.operation(of: client, on: connection)
    guard handler.supersededRequests.replace(suspended, with: stream, as: operation) else {
      body.ended()
      return refuse(.superseded)
    }
    do throws(ImageError) {
      let length = delivery.body.expected
      let response = try Response(
        head: head, style: configuration.headStyle, stream: stream, length: length)
      record(delivery.cacheStatus, Timings(), microseconds: microseconds)
      client.streaming = Streaming(
        stream: stream, cacheStatus: delivery.cacheStatus.headerValue)
      let result = queue(response, status: 200, bytes: length ?? 0)
      if length == nil {
        // Needed because libmicrohttpd's own time-out restarts with each byte that the client
        // reads.
        client.watch.deadline =
          Clock.coarseMilliseconds() + configuration.requestTimeout.wholeMilliseconds
          + policy.transferTime.milliseconds(for: Self.presumedLength)
      }
      return result
    } catch {
      body.ended()
      handler.supersededRequests.end(stream)
      return refuse(error)
    }
  }

  /// Responds with a file on disk. Aborts the connection if the rest cannot be read in time.
  ///
  /// - Throws: `internal` if memory is exhausted.
  func stream(
    _ file: FileRegion, head: ResponseHead, cacheStatus: CacheStatus? = nil, status: Int = 200,
    insteadOf failure: (error: ImageError, name: String)? = nil
  ) throws(ImageError) -> MHD_Result {
    let configuration = policy.configuration
    let stream = BodyStream(
      FileBody(file, access: configuration.fileAccess, threads: handler.fileReaders),
      on: connection, of: client, handler: handler,
      maximumWait: configuration.requestTimeout.wholeMilliseconds)
    let response = try Response(
      head: head, style: configuration.headStyle, stream: stream, length: file.count,
      closes: handler.closesConnections)
    // Logged when it was sent, with the number of bytes sent.
    client.streaming = Streaming(
      stream: stream, cacheStatus: cacheStatus?.headerValue, status: status, failure: failure)
    return queue(response, status: status, bytes: file.count)
  }

  /// Streams the events that `observe` reports until the client disconnects.
  ///
  /// - Parameter minimumInterval: the smallest reported step, as a fraction from 0 to 1.
  func streamEvents(
    minimumInterval: Double, observe: (ProgressEvents) -> Observation?
  ) throws(ImageError) -> MHD_Result {
    guard !handler.isDraining else { throw .draining }
    let events = ProgressEvents(minimumInterval: minimumInterval)
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", value: "text/event-stream")
    head.add("Cache-Control", value: "no-store")
    // Disables nginx's buffering, which would delay the events.
    head.add("X-Accel-Buffering", value: "no")
    addCommon(to: &head, vary: nil)
    let stream = BodyStream(
      events.stream, on: connection, of: client, handler: handler, maximumWait: Self.keepAlive)
    let response = try Response(
      head: head, style: policy.configuration.headStyle, stream: stream, length: nil)
    // The stream retains the observation until the client disconnects.
    let observation = observe(events)
    events.stream.whenEnded { withExtendedLifetime(observation) {} }
    client.streaming = Streaming(stream: stream, cacheStatus: nil)
    let result = queue(response, status: 200, bytes: 0)
    client.watch.deadline = .max
    return result
  }
}
