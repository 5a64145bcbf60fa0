// ProgressEvents: downloads and prefetches, live.

import CMicrohttpd
import FoundationEssentials
import Glibc
import Model
import Platform
import Telemetry

extension RequestContext {
  /// Milliseconds without news after which a comment is sent.
  private static let keepAlive = 15_000

  /// Whether the client asks for server-sent events.
  var wantsEvents: Bool {
    guard client.method == .get, let accept = RequestHandler.header("Accept", of: connection) else {
      return false
    }
    return String(cString: accept).lowercased().contains("text/event-stream")
  }

  /// Sends each download's steps until the client goes: those that are now, then whatever happens.
  func stream(downloads interval: Double) throws(ImageError) -> MHD_Result {
    let downloads = handler.operations.downloads
    return try stream(interval) { events in
      let observation = downloads.observeDownloads { events.report($0) }
      events.list(downloads.downloads())
      return observation
    }
  }

  /// Sends the steps of one prefetch until its end.
  func stream(prefetch status: PrefetchStatus, _ interval: Double) throws(ImageError) -> MHD_Result
  {
    let prefetcher = handler.operations.prefetcher
    return try stream(interval) { events in
      let observation = prefetcher.observePrefetch(status.id) { events.report($0) }
      // It may have ended before it could be observed.
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
    // Asks nginx not to keep the events until a buffer is full.
    head.add("X-Accel-Buffering", "no")
    addCommon(to: &head, vary: nil)
    let stream = BodyStream(
      events.stream, on: connection, of: client, handler: handler, patience: Self.keepAlive)
    let response = try Response(
      head: head, style: handler.configuration.headStyle, stream: stream, length: nil)
    // Held by the stream itself until nobody reads it.
    let observation = begin(events)
    events.stream.whenAbandoned { withExtendedLifetime(observation) {} }
    client.streaming = Streaming(stream: stream, cacheStatus: nil)
    let result = queue(response, status: 200, bytes: 0)
    client.watch.deadline = .max
    return result
  }
}

/// From steps to events.
final class ProgressEvents: Sendable {
  /// Where they go.
  let stream = EventStream()
  private struct State {
    var filter: ProgressFilter
    /// Downloads of which something was reported before those that are now were listed; `nil` afterwards.
    var known: Set<UInt64>? = []
  }

  private let state: Lock<State>

  /// - Parameter minimumInterval: the least step that is reported, as a part of the whole.
  init(minimumInterval: Double) {
    state = Lock(State(filter: ProgressFilter(minimumInterval: minimumInterval)))
  }

  /// A download's step.
  func report(_ status: DownloadStatus) {
    send { state in
      state.known?.insert(status.id)
      return self.append(status, &state)
    }
  }

  /// The downloads that are there at the beginning, of which nothing later was reported. Called once.
  func list(_ downloads: [DownloadStatus]) {
    for status in downloads {
      send { state in
        state.known?.contains(status.id) == true ? nil : self.append(status, &state)
      }
    }
    state.withLock { $0.known = nil }
  }

  /// A prefetch's step; with its end the events end.
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

  /// Appends an event if it is one. Under the lock, so that no step overtakes a later one of the same thing; the stream's
  /// own is below it and never held while anybody else is called.
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
