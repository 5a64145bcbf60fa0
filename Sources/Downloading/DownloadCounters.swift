// DownloadCounters: what /stats says about downloads, written by the transfer thread and read by any.

import Model
import Synchronization
import Telemetry

/// The figures of downloads as they come about.
final class DownloadCounters: Sendable {
  private let succeeded = Counter()
  private let cancelled = Counter()
  private let bytes = Counter()
  private let failed = CodeCounts()
  private let latency = LatencyHistogram()
  private let running = Atomic<Int>(0)
  private let waiting = Atomic<Int>(0)

  /// Counts a load's end. `duration`: of its transfer, where there was one.
  func count(_ result: Result<Download, ImageError>, bytes: Int, duration: Duration?) {
    switch result {
    case .success: succeeded.add()
    case .failure(.cancelled): cancelled.add()
    case .failure(let error): failed.add(error.code)
    }
    self.bytes.add(bytes)
    if let duration { latency.record(duration) }
  }

  /// Takes over the queue's present state.
  func publish(running: Int, waiting: Int) {
    self.running.store(running, ordering: .relaxed)
    self.waiting.store(waiting, ordering: .relaxed)
  }

  func figures(_ configuration: DownloaderConfiguration) -> DownloadFigures {
    var figures = DownloadFigures()
    figures.succeeded = succeeded.value
    figures.failed = failed.values
    figures.cancelled = cancelled.value
    figures.running = running.load(ordering: .relaxed)
    figures.waiting = waiting.load(ordering: .relaxed)
    figures.limit = configuration.limit
    figures.limitPerHost = configuration.limitPerHost
    figures.bytes = bytes.value
    figures.latency = latency.figures
    return figures
  }
}
