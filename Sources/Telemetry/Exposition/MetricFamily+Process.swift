// MetricFamily+Process: the metrics of imaging workers, the server process and the log.

extension MetricFamily {
  /// The metrics of imaging jobs and imaging workers.
  static let imaging: [MetricFamily] = [
    .counters("pictor_imaging_jobs_total", by: "result", "Ended imaging jobs, by result.") {
      [
        "succeeded": $0.imaging.succeeded, "cancelled": $0.imaging.cancelled,
        "failed": $0.imaging.failed.values.reduce(0, +),
      ]
    },
    .counters("pictor_imaging_failures_total", by: "code", "Failed imaging jobs, by error code.") {
      $0.imaging.failed
    },
    .histogram("pictor_imaging_job_duration_seconds", "Time of imaging jobs, start to result.") {
      $0.imaging.latency
    },
    .gauge("pictor_imaging_jobs_running", "Running imaging jobs.") { $0.imaging.running },
    .gauge("pictor_imaging_jobs_waiting", "Queued imaging jobs.") { $0.imaging.waiting },
    .gauge("pictor_imaging_jobs_waiting_limit", "The most imaging jobs that may be queued.") {
      $0.imaging.limit
    },
    .gauge("pictor_imaging_workers", "Live imaging workers.") { $0.imaging.workers },
    .counter(
      "pictor_imaging_workers_lost_total",
      "Imaging workers that crashed, missed a deadline or broke the protocol."
    ) { $0.imaging.workersLost },
    .counter(
      "pictor_imaging_jobs_underestimated_total",
      "Jobs repeated with all the memory of a worker."
    ) { $0.imaging.underestimated },
    .counter("pictor_imaging_workers_retired_total", "Imaging workers replaced on purpose.") {
      $0.imaging.workersRetired
    },
    .gauge("pictor_imaging_reserved_cores", "Cores that workers leave to busy event loops.") {
      $0.imaging.reservedCores
    },
    .gauge("pictor_imaging_resident_memory_bytes", "Resident memory of all imaging workers.") {
      $0.imaging.residentBytes
    },
    .gauge(
      "pictor_imaging_landlock_version",
      "The version of Landlock that seals the imaging workers; 0: none."
    ) { $0.imaging.sandbox?.landlock },
    .gauge(
      "pictor_imaging_seccomp", "Whether seccomp seals the imaging workers: 1, else 0."
    ) { $0.imaging.sandbox.map { $0.seccomp ? 1 : 0 } },
  ]

  /// The metrics of the server process, its build and its log.
  static let process: [MetricFamily] = [
    MetricFamily(.gauge, "pictor_build_info", "The version of the program; always 1.") {
      [([("version", $0.version)], .number(1))]
    },
    .fraction(.gauge, "pictor_uptime_seconds", "Time since the start.") { $0.uptimeSeconds },
    .gauge("pictor_draining", "Whether the server stops: 1, else 0.") {
      $0.status == "draining" ? 1 : 0
    },
    .fraction(
      .counter, "pictor_process_cpu_seconds_total", "Processor time used, user and system."
    ) { $0.process.cpuSeconds },
    .gauge("pictor_process_resident_memory_bytes", "Resident memory of the server process.") {
      $0.process.residentBytes
    },
    .gauge("pictor_process_threads", "Threads of the server process.") { $0.process.threads },
    .gauge("pictor_process_open_fds", "Open file descriptors.") { $0.process.descriptors },
    .gauge("pictor_process_max_fds", "The limit of open file descriptors.") {
      $0.process.descriptorLimit
    },
    .counters("pictor_log_lines_total", by: "result", "Lines of the log, by what became of them.") {
      [
        "written": $0.log.written, "dropped": $0.log.dropped, "summed_up": $0.log.summedUp,
      ]
    },
    .gauge("pictor_log_queue_bytes", "Bytes of lines that wait or are being written.") {
      $0.log.waitingBytes
    },
    .counters("pictor_trace_spans_total", by: "result", "Recorded spans, by what became of them.") {
      guard let tracing = $0.tracing else { return [:] }
      return [
        "exported": tracing.exported, "dropped": tracing.dropped, "rejected": tracing.rejected,
        "lost": tracing.lost,
      ]
    },
    .counters("pictor_trace_exports_total", by: "result", "Requests to the collector of spans.") {
      guard let tracing = $0.tracing else { return [:] }
      return ["succeeded": tracing.exportsSucceeded, "failed": tracing.exportsFailed]
    },
    .gauge("pictor_trace_queue_spans", "Spans that are queued or being sent.") {
      $0.tracing?.waiting
    },
    .gauge("pictor_trace_queue_limit", "The most spans that may be queued.") {
      $0.tracing?.limit
    },
  ]
}
