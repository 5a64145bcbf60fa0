// PoolCounters: counts imaging jobs and workers.

import Core

/// Counters of a pool.
final class PoolCounters: Sendable {
  let succeeded = Counter(
    "succeeded", "pictor_imaging_jobs_total", "Ended imaging jobs, by result.",
    ["result": "succeeded"])
  let cancelled = Counter(
    "cancelled", "pictor_imaging_jobs_total", "Jobs without a participant left.",
    ["result": "cancelled"])
  let failed = CodeCounts(
    "failed", "pictor_imaging_failures_total", by: "code", "Failed imaging jobs, by error code.")
  let lost = Counter(
    "workers_lost", "pictor_imaging_workers_lost_total",
    "Imaging workers that crashed, missed a deadline or broke the protocol.")
  let retired = Counter(
    "workers_retired", "pictor_imaging_workers_retired_total",
    "Imaging workers replaced on purpose.")
  /// Jobs that needed more memory than estimated.
  let underestimated = Counter(
    "underestimated", "pictor_imaging_jobs_underestimated_total",
    "Jobs repeated with all the memory of a worker.")
  let faceSearches = Counter(
    "face_searches", "pictor_imaging_face_searches_total",
    "Sources that were searched for faces; the faces are kept for other variants.")
  let latency = LatencyHistogram(
    "latency", "pictor_imaging_job_duration_seconds", "Time of imaging jobs, start to result.")
}
