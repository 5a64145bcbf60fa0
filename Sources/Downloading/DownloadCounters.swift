// DownloadCounters: the download figures of /stats, written by the transfer thread.

import Model
import Platform
import Synchronization
import Telemetry

/// The download figures. The transfer thread writes them and any thread may read them.
final class DownloadCounters: Sendable {
  private let succeeded = Counter()
  private let cancelled = Counter()
  private let bytes = Counter()
  private let failed = CodeCounts()
  /// Retried requests.
  let retries = Counter()
  /// Stalled downloads that ended so that others could start.
  let givenUp = Counter()
  private let latency = LatencyHistogram()
  private let running = Atomic<Int>(0)
  private let waiting = Atomic<Int>(0)
  private let silent = Atomic<Int>(0)
  private let waitingForMemory = Atomic<Int>(0)
  private let slow = Atomic<Int>(0)
  private let aboveShare = Atomic<Int>(0)
  private let names = Lock(NameFigures())
  private let circuitsOpen = Atomic<Int>(0)
  private let isPaused = Atomic<Bool>(false)

  /// Counts the end of a download.
  ///
  /// - Parameters:
  ///   - result: its result.
  ///   - bytes: the bytes it received.
  ///   - duration: the time of its transfer; `nil` without a transfer.
  func count(_ result: Result<LoadResult, ImageError>, bytes: Int, duration: Duration?) {
    switch result {
    case .success: succeeded.add()
    case .failure(.cancelled): cancelled.add()
    case .failure(let error): failed.add(error.code)
    }
    self.bytes.add(bytes)
    if let duration { latency.record(duration) }
  }

  /// Stores the current state of the queue, the circuit breaker, the look-ups and the memory.
  func publish(
    _ queue: DownloadQueue, waiting count: Int, breaker: CircuitBreaker, names: NameFigures,
    waitingForMemory: Int
  ) {
    self.names.withLock { $0 = names }
    self.waitingForMemory.store(waitingForMemory, ordering: .relaxed)
    running.store(queue.runningCount, ordering: .relaxed)
    waiting.store(count, ordering: .relaxed)
    silent.store(queue.silentCount, ordering: .relaxed)
    slow.store(queue.slowCount, ordering: .relaxed)
    aboveShare.store(queue.surplusCount, ordering: .relaxed)
    isPaused.store(queue.isPaused, ordering: .relaxed)
    circuitsOpen.store(breaker.openCount, ordering: .relaxed)
  }

  func figures(_ configuration: DownloaderConfiguration) -> DownloadFigures {
    var figures = DownloadFigures()
    figures.succeeded = succeeded.value
    figures.failed = failed.values
    figures.cancelled = cancelled.value
    figures.running = running.load(ordering: .relaxed)
    figures.waiting = waiting.load(ordering: .relaxed)
    figures.silent = silent.load(ordering: .relaxed)
    figures.waitingForMemory = waitingForMemory.load(ordering: .relaxed)
    figures.slow = slow.load(ordering: .relaxed)
    figures.givenUp = givenUp.value
    figures.retries = retries.value
    figures.circuitsOpen = circuitsOpen.load(ordering: .relaxed)
    figures.paused = isPaused.load(ordering: .relaxed)
    figures.limit = configuration.limit
    figures.limitPerHost = configuration.limitPerHost
    figures.limitPerClient = configuration.share
    figures.aboveShare = aboveShare.load(ordering: .relaxed)
    figures.bytes = bytes.value
    figures.names = names.withLock { $0 }
    figures.latency = latency.figures
    return figures
  }
}
