// ProgressEvents: downloads and prefetches, live.

import CMicrohttpd
import FoundationEssentials
import Glibc
import Model
import Platform
import Telemetry

extension Exchanging {
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
      for status in downloads.downloads() { events.reportUnlessKnown(status) }
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
    let id = RequestID()
    var head = ResponseHead(date: Clock.now(), id: id)
    head.add("Content-Type", "text/event-stream")
    head.add("Cache-Control", "no-store")
    // Asks nginx not to keep the events until a buffer is full.
    head.add("X-Accel-Buffering", "no")
    head.addCommon(corsOrigin: handler.configuration.corsOrigin)
    let stream = BodyStream(
      events.stream, on: connection, of: client, handler: handler, patience: Self.keepAlive)
    let response = try Response(head: head, stream: stream, length: nil)
    // Held by the stream itself until nobody reads it.
    let observation = begin(events)
    events.stream.whenAbandoned { withExtendedLifetime(observation) {} }
    log(id, 200, 0, nil, error: nil)
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
    /// Downloads of which something was reported before those that are now were listed.
    var known: Set<UInt64> = []
  }

  private let state: Lock<State>

  /// - Parameter minimumInterval: the least step that is reported, as a part of the whole.
  init(minimumInterval: Double) {
    state = Lock(State(filter: ProgressFilter(minimumInterval: minimumInterval)))
  }

  /// A download's step.
  func report(_ status: DownloadStatus) {
    let isFinal = status.state == .finished || status.state == .failed
    let passes = state.withLock { state in
      state.known.insert(status.id)
      return state.filter.passes(status.id, fraction: status.fraction, isFinal: isFinal)
    }
    if passes { send("download", "\(status.id)", status, isFinal: isFinal) }
  }

  /// A download that is there at the beginning, if nothing later was reported of it.
  func reportUnlessKnown(_ status: DownloadStatus) {
    let isKnown = state.withLock { $0.known.contains(status.id) }
    if !isKnown { report(status) }
  }

  /// A prefetch's step; with its end the events end.
  func report(_ status: PrefetchStatus) {
    let isFinal = status.state != .running
    let fraction = status.total > 0 ? Double(status.done) / Double(status.total) : nil
    let passes = state.withLock {
      $0.filter.passes(0, fraction: fraction, isFinal: isFinal)
    }
    guard passes else { return }
    send("prefetch", status.id, status, isFinal: isFinal)
    if isFinal { stream.end() }
  }

  private func send(_ name: String, _ key: String, _ content: some Encodable, isFinal: Bool) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let json = try? encoder.encode(content) else { return }
    stream.send(name, about: key, Array(json), isFinal: isFinal)
  }
}
