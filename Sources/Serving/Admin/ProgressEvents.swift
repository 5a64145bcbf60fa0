// ProgressEvents: streams the progress of downloads and prefetches as server-sent events.

import CMicrohttpd
import FoundationEssentials
import Glibc
import Model
import Platform
import Telemetry

extension RequestContext {
  /// Milliseconds without events after which a comment is sent.
  private static let keepAlive = 15_000

  /// Whether the client requests server-sent events.
  var wantsEvents: Bool {
    guard client.method == .get, let accept = RequestHandler.header("Accept", of: connection) else {
      return false
    }
    return String(cString: accept).lowercased().contains("text/event-stream")
  }

  /// Streams the progress of all downloads until the client disconnects. Starts with the current
  /// downloads.
  func stream(downloads interval: Double) throws(ImageError) -> MHD_Result {
    let downloads = handler.operations.downloads
    return try stream(interval) { events in
      let observation = downloads.observeDownloads { events.report($0) }
      events.list(downloads.downloads())
      return observation
    }
  }

  /// Streams the progress of one prefetch until it ends.
  func stream(prefetch status: PrefetchStatus, _ interval: Double) throws(ImageError) -> MHD_Result
  {
    let prefetcher = handler.operations.prefetcher
    return try stream(interval) { events in
      let observation = prefetcher.observePrefetch(status.id) { events.report($0) }
      // The prefetch may have ended before the observation began.
      events.report(prefetcher.prefetchStatus(status.id) ?? status)
      return observation
    }
  }

  private func stream(
    _ interval: Double, _ begin: (ProgressEvents) -> Observation?
  ) throws(ImageError) -> MHD_Result {
    guard !handler.isDraining else { throw .draining }
    let events = ProgressEvents(minimumInterval: interval)
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", "text/event-stream")
    head.add("Cache-Control", "no-store")
    // Disables nginx's buffering, which would delay the events.
    head.add("X-Accel-Buffering", "no")
    addCommon(to: &head, vary: nil)
    let stream = BodyStream(
      events.stream, on: connection, of: client, handler: handler, patience: Self.keepAlive)
    let response = try Response(
      head: head, style: handler.configuration.headStyle, stream: stream, length: nil)
    // The stream retains the observation until the client disconnects.
    let observation = begin(events)
    events.stream.whenAbandoned { withExtendedLifetime(observation) {} }
    client.streaming = Streaming(stream: stream, cacheStatus: nil)
    let result = queue(response, status: 200, bytes: 0)
    client.watch.deadline = .max
    return result
  }
}

/// Converts progress steps to server-sent events.
final class ProgressEvents: Sendable {
  /// The stream that receives the events.
  let stream = EventStream()
  private struct State {
    var filter: ProgressFilter
    /// Downloads reported before the initial list was sent; `nil` afterwards.
    var known: Set<UInt64>? = []
  }

  private let state: Lock<State>

  /// Creates a converter.
  ///
  /// - Parameter minimumInterval: the smallest reported step, as a fraction from 0 to 1.
  init(minimumInterval: Double) {
    state = Lock(State(filter: ProgressFilter(minimumInterval: minimumInterval)))
  }

  /// Reports a step of a download.
  func report(_ status: DownloadStatus) {
    send { state in
      state.known?.insert(status.id)
      return self.append(status, &state)
    }
  }

  /// Reports the initial downloads, except those already reported with a later step. Call once.
  func list(_ downloads: [DownloadStatus]) {
    for status in downloads {
      send { state in
        state.known?.contains(status.id) == true ? nil : self.append(status, &state)
      }
    }
    state.withLock { $0.known = nil }
  }

  /// Reports a step of a prefetch. Ends the stream with the prefetch's last step.
  func report(_ status: PrefetchStatus) {
    let isFinal = status.state != .running
    let fraction = status.total > 0 ? Double(status.done) / Double(status.total) : nil
    send { state in
      guard state.filter.passes(0, fraction: fraction, isFinal: isFinal) else { return nil }
      return self.stream.append("prefetch", about: status.id, isFinal: isFinal) {
        Self.json(status)
      }
    }
    if isFinal { stream.end() }
  }

  /// Appends an event under the lock, so that the steps of one item stay in order. The stream's
  /// lock nests inside and is never held during callbacks.
  private func send(_ append: (inout State) -> (@Sendable () -> Void)?) {
    state.withLock(append)?()
  }

  private func append(
    _ status: DownloadStatus, _ state: inout State
  ) -> (@Sendable () -> Void)? {
    let isFinal = status.state == .finished || status.state == .failed
    guard state.filter.passes(status.id, fraction: status.fraction, isFinal: isFinal) else {
      return nil
    }
    return stream.append("download", about: "\(status.id)", isFinal: isFinal) {
      Self.json(status)
    }
  }

  private static func json(_ content: some Encodable) -> [UInt8]? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return (try? encoder.encode(content)).map { Array($0) }
  }
}
