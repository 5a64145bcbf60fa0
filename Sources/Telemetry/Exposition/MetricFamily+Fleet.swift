// MetricFamily+Fleet: the metrics of what machines share by Redis.

extension MetricFamily {
  /// The metrics of a fleet. A machine that is alone has none.
  static let fleet: [MetricFamily] = [
    .gauge("pictor_fleet_connected", "1 if Redis is used, 0 if it is away.") {
      $0.fleet.map { $0.isConnected ? 1 : 0 }
    },
    .counters(
      "pictor_fleet_commands_total", by: "result", "Commands to Redis, by what became of them."
    ) {
      guard let fleet = $0.fleet else { return [:] }
      return [
        "sent": fleet.commands, "unavailable": fleet.unavailable, "timed_out": fleet.timedOut,
        "error": fleet.errors,
      ]
    },
    .counters(
      "pictor_fleet_lookups_total", by: "result", "Look-ups in the shared tier, by result."
    ) {
      guard let fleet = $0.fleet else { return [:] }
      return ["hit": fleet.hits, "miss": fleet.misses, "refused": fleet.refused]
    },
    .counters("pictor_fleet_stores_total", by: "result", "Variants for the shared tier.") {
      guard let fleet = $0.fleet else { return [:] }
      return ["written": fleet.stores, "dropped": fleet.dropped]
    },
    .gauge("pictor_fleet_stores_waiting", "Variants that wait to be written.") {
      $0.fleet?.storesWaiting
    },
    .counters("pictor_fleet_connection_failures_total", by: "service", "Connections that failed.") {
      $0.fleet.map { ["redis": $0.failures] } ?? [:]
    },
    .counters(
      "pictor_fleet_purges_total", by: "direction",
      "Purges published, and applied from other machines."
    ) {
      guard let fleet = $0.fleet else { return [:] }
      return ["published": fleet.purgesPublished, "applied": fleet.purgesApplied]
    },
    .gauge("pictor_fleet_purges_waiting", "Purges of this machine that wait for Redis.") {
      $0.fleet?.purgesWaiting
    },
    .gauge("pictor_fleet_bucket_ready", "1 if the bucket is asked, 0 if it is away.") {
      $0.fleet?.bucket.map { $0.isReady ? 1 : 0 }
    },
    .counters(
      "pictor_fleet_bucket_requests_total", by: "result",
      "Reads and writes of entries in the bucket."
    ) {
      guard let bucket = $0.fleet?.bucket else { return [:] }
      return [
        "hit": bucket.hits, "miss": bucket.misses, "refused": bucket.refused,
        "unavailable": bucket.unavailable, "timed_out": bucket.timedOut, "failed": bucket.failures,
        "written": bucket.stores, "dropped": bucket.dropped,
      ]
    },
    .gauge("pictor_fleet_bucket_waiting", "Requests to the bucket that wait to be sent.") {
      $0.fleet?.bucket?.waiting
    },
    .counters(
      "pictor_fleet_bucket_bytes_total", by: "service", "Bytes of entries found and written."
    ) {
      $0.fleet?.bucket.map { ["s3": $0.bytes] } ?? [:]
    },
    .fraction(
      .gauge, "pictor_fleet_position_age_seconds",
      "Time since the purge stream was read to its end."
    ) {
      $0.fleet?.positionAgeSeconds
    },
  ]
}
