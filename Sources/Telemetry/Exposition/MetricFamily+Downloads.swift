// MetricFamily+Downloads: the metrics of downloads from origins.

extension MetricFamily {
  /// The metrics of downloads, circuits and names.
  static let downloads: [MetricFamily] = [
    .counters("pictor_downloads_total", by: "result", "Ended downloads, by result.") { stats in
      [
        "succeeded": stats.downloads.succeeded, "cancelled": stats.downloads.cancelled,
        "failed": stats.downloads.failed.values.reduce(0, +),
      ]
    },
    .counters("pictor_download_failures_total", by: "code", "Failed downloads, by error code.") {
      $0.downloads.failed
    },
    .counter("pictor_download_retries_total", "Requests repeated after a failure.") {
      $0.downloads.retries
    },
    .counter("pictor_download_given_up_total", "Stalled downloads ended for others.") {
      $0.downloads.givenUp
    },
    .counter("pictor_download_body_bytes_total", "Body bytes received from origins.") {
      $0.downloads.bytes
    },
    .histogram("pictor_download_duration_seconds", "Time of transfers, start to end.") {
      $0.downloads.latency
    },
    .gauge("pictor_downloads_running", "Running downloads.") { $0.downloads.running },
    .gauge("pictor_downloads_waiting", "Queued downloads.") { $0.downloads.waiting },
    .gauge("pictor_downloads_waiting_for_memory", "Running downloads that wait for memory.") {
      $0.downloads.waitingForMemory
    },
    .gauge("pictor_downloads_silent", "Running downloads whose host sends nothing.") {
      $0.downloads.silent
    },
    .gauge("pictor_downloads_slow", "Running downloads whose host sends too slowly.") {
      $0.downloads.slow
    },
    .gauge("pictor_downloads_limit", "The most downloads that may run.") { $0.downloads.limit },
    .gauge("pictor_downloads_per_host_limit", "The most downloads that may run per host.") {
      $0.downloads.limitPerHost
    },
    .gauge("pictor_downloads_per_client_limit", "The share of running downloads of a client.") {
      $0.downloads.limitPerClient
    },
    .gauge("pictor_downloads_above_share", "Running downloads above their clients' shares.") {
      $0.downloads.aboveShare
    },
    .gauge("pictor_downloads_paused", "Whether an operator paused downloads: 1, else 0.") {
      $0.downloads.paused ? 1 : 0
    },
    .gauge("pictor_circuits_open", "Hosts whose circuit breaker is open or half-open.") {
      $0.downloads.circuitsOpen
    },
    .gauge("pictor_name_lookups_running", "Names being looked up.") {
      $0.downloads.names.running
    },
    .gauge("pictor_name_lookups_stuck", "Running look-ups of names that take too long.") {
      $0.downloads.names.stuck
    },
    .gauge("pictor_name_lookups_waiting", "Names that wait for a thread.") {
      $0.downloads.names.waiting
    },
    .gauge("pictor_name_lookups_limit", "The most names looked up at once.") {
      $0.downloads.names.limit
    },
    .counter("pictor_name_lookups_refused_total", "Names refused because too many waited.") {
      $0.downloads.names.refused
    },
    .gauge("pictor_names_remembered", "Remembered names, existing or not.") {
      $0.downloads.names.remembered
    },
  ]
}
