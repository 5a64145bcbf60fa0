// DownloadCounters: the download figures of /stats, written by the transfer thread.

import Core

/// The download figures. The transfer thread writes them and any thread may read them.
final class DownloadCounters: Sendable {
  private let succeeded = Counter(
    "succeeded", "pictor_downloads_total", "Ended downloads, by result.", ["result": "succeeded"])
  private let cancelled = Counter(
    "cancelled", "pictor_downloads_total", "Downloads without a participant left.",
    ["result": "cancelled"])
  private let failed = CodeCounts(
    "failed", "pictor_download_failures_total", by: "code", "Failed downloads, by error code.")
  let retries = Counter(
    "retries", "pictor_download_retries_total", "Requests repeated after a failure.")
  let givenUp = Counter(
    "given_up", "pictor_download_given_up_total", "Stalled downloads ended for others.")
  private let bytes = Counter(
    "bytes", "pictor_download_body_bytes_total", "Body bytes received from origins.")
  private let latency = LatencyHistogram(
    "latency", "pictor_download_duration_seconds", "Time of transfers, start to end.")
  private let running = Gauge("running", "pictor_downloads_running", "Running downloads.")
  private let waiting = Gauge("waiting", "pictor_downloads_waiting", "Queued downloads.")
  private let waitingForMemory = Gauge(
    "waiting_for_memory", "pictor_downloads_waiting_for_memory",
    "Running downloads that wait for memory.")
  private let silent = Gauge(
    "silent", "pictor_downloads_silent", "Running downloads whose host sends nothing.")
  private let slow = Gauge(
    "slow", "pictor_downloads_slow", "Running downloads whose host sends too slowly.")
  private let aboveShare = Gauge(
    "above_share", "pictor_downloads_above_share",
    "Running downloads above their clients' shares.")
  private let circuitsOpen = Gauge(
    "circuits_open", "pictor_circuits_open", "Hosts whose circuit breaker is open or half-open.")
  private let isPaused = Lock(false)
  /// The figures of look-ups of names.
  let names = NameCounters()

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

  /// Stores the current state of the queue, the circuit breaker and the memory.
  func publish(
    _ queue: DownloadQueue, waiting count: Int, breaker: CircuitBreaker, waitingForMemory: Int
  ) {
    self.waitingForMemory.set(waitingForMemory)
    running.set(queue.runningCount)
    waiting.set(count)
    silent.set(queue.silentCount)
    slow.set(queue.slowCount)
    aboveShare.set(queue.surplusCount)
    circuitsOpen.set(breaker.openCount)
    isPaused.withLock { $0 = queue.isPaused }
  }

  func figures(_ configuration: DownloaderConfiguration) -> Figures {
    var figures = Figures(of: self)
    figures.add(
      nil, failed.sum, "pictor_downloads_total", "Failed downloads.", ["result": "failed"])
    figures.add(
      "limit", configuration.limit, "pictor_downloads_limit", "The most downloads that may run.")
    figures.add(
      "limit_per_host", configuration.limitPerHost, "pictor_downloads_per_host_limit",
      "The most downloads that may run per host.")
    figures.add(
      "limit_per_client", configuration.share, "pictor_downloads_per_client_limit",
      "The share of running downloads of a client.")
    figures.add(
      "paused", isPaused.withLock { $0 }, "pictor_downloads_paused",
      "Whether an operator paused downloads: 1, else 0.")
    figures.add("names", Figures(of: names))
    return figures
  }
}

/// The figures of the names of origins and proxies.
final class NameCounters: Sendable {
  let running = Gauge("running", "pictor_name_lookups_running", "Names being looked up.")
  /// Those that take longer than `download.connect_timeout`.
  let stuck = Gauge(
    "stuck", "pictor_name_lookups_stuck", "Running look-ups of names that take too long.")
  let waiting = Gauge(
    "waiting", "pictor_name_lookups_waiting", "Names that wait for a thread.")
  let limit = Gauge("limit", "pictor_name_lookups_limit", "The most names looked up at once.")
  let refused = Counter(
    "refused", "pictor_name_lookups_refused_total", "Names refused because too many waited.")
  let remembered = Gauge(
    "remembered", "pictor_names_remembered", "Remembered names, existing or not.")
}
