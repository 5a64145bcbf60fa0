// FleetCounters: what a machine of a fleet counts.

import Core

final class RedisCounters: Sendable {
  /// Commands besides those of the reader of the purge stream, which no request waits for.
  let sent = Counter(
    "commands", "pictor_fleet_commands_total", "Commands to Redis, by what became of them.",
    ["result": "sent"])
  /// Not sent, because the breaker was open or too many commands waited.
  let unavailable = Counter(
    "unavailable", "pictor_fleet_commands_total", "Commands not sent.", ["result": "unavailable"])
  let timedOut = Counter(
    "timed_out", "pictor_fleet_commands_total", "Commands without a reply in time.",
    ["result": "timed_out"])
  let errors = Counter(
    "errors", "pictor_fleet_commands_total", "Error replies.", ["result": "error"])
  /// Refused, ended, silent, or with an invalid reply.
  let failures = Counter(
    "failures", "pictor_fleet_connection_failures_total", "Connections that failed.",
    ["service": "redis"])
}

/// Counts of the shared tier in Redis.
final class SharedCounters: Sendable {
  let hits = Counter(
    "hits", "pictor_fleet_lookups_total", "Look-ups in the shared tier, by result.",
    ["result": "hit"])
  let misses = Counter(
    "misses", "pictor_fleet_lookups_total", "Absent entries.", ["result": "miss"])
  let refused = Counter(
    "refused", "pictor_fleet_lookups_total", "Entries purged, damaged or of another version.",
    ["result": "refused"])
  let stores = Counter(
    "stores", "pictor_fleet_stores_total", "Variants for the shared tier.", ["result": "written"])
  /// The queue was full, or Redis or the bucket was away or full.
  let dropped = Counter(
    "dropped", "pictor_fleet_stores_total", "Variants not written.", ["result": "dropped"])
}

final class PurgeCounters: Sendable {
  /// Purges of this machine that are in the stream.
  let published = Counter(
    "purges_published", "pictor_fleet_purges_total",
    "Purges published, and applied from other machines.", ["direction": "published"])
  /// Purges of other machines, and purges of everything after a loss.
  let applied = Counter(
    "purges_applied", "pictor_fleet_purges_total", "Purges applied.", ["direction": "applied"])
}

/// Counts of the bucket of the shared tier.
final class S3Counters: Sendable {
  let hits = Counter(
    "hits", "pictor_fleet_bucket_requests_total", "Reads and writes of entries in the bucket.",
    ["result": "hit"])
  let misses = Counter(
    "misses", "pictor_fleet_bucket_requests_total", "Absent entries.", ["result": "miss"])
  /// Of `hits`.
  let refused = Counter(
    "refused", "pictor_fleet_bucket_requests_total",
    "Entries purged, expired, damaged, or of another version.", ["result": "refused"])
  /// Not sent, failed, or without room for the entry.
  let unavailable = Counter(
    "unavailable", "pictor_fleet_bucket_requests_total", "Reads without an answer.",
    ["result": "unavailable"])
  let timedOut = Counter(
    "timed_out", "pictor_fleet_bucket_requests_total", "Reads and writes without one in time.",
    ["result": "timed_out"])
  /// Refused connections, errors of the bucket, time-outs, invalid answers.
  let failures = Counter(
    "failures", "pictor_fleet_bucket_requests_total", "Reads and writes that failed.",
    ["result": "failed"])
  let stores = Counter(
    "stores", "pictor_fleet_bucket_requests_total", "Entries written.", ["result": "written"])
  let dropped = Counter(
    "dropped", "pictor_fleet_bucket_requests_total", "Entries not written.",
    ["result": "dropped"])
  let bytes = Counter(
    "bytes", "pictor_fleet_bucket_bytes_total", "Bytes of entries found and written.",
    ["service": "s3"])
}
