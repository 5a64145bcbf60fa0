// ProgressEvents: reports the progress of downloads and prefetches as server-sent events.

import Model
import Platform

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
      return self.append(status, to: &state)
    }
  }

  /// Reports the initial downloads, except those already reported with a later step. Call once.
  func list(_ downloads: [DownloadStatus]) {
    for status in downloads {
      send { state in
        state.known?.contains(status.id) == true ? nil : self.append(status, to: &state)
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
        JSON.bytes(of: status)
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
    _ status: DownloadStatus, to state: inout State
  ) -> (@Sendable () -> Void)? {
    let isFinal = status.state == .finished || status.state == .failed
    guard state.filter.passes(status.id, fraction: status.fraction, isFinal: isFinal) else {
      return nil
    }
    return stream.append("download", about: "\(status.id)", isFinal: isFinal) {
      JSON.bytes(of: status)
    }
  }
}
