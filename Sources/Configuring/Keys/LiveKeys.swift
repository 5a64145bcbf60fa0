// LiveKeys: the keys that a reload applies, and how a configuration takes their values.

import Model

extension ConfigurationKey {
  /// Whether a reload applies the key: its value is read for each request, load or line of the log.
  /// Other keys decide at the start: listeners, threads, folders, tiers, workers, connections.
  public var isLive: Bool { Self.live.contains(path) }

  private static let live: Set<String> = [
    "presets", "watermarks", "fallbacks", "hosts", "admin.tokens", "signing.mode",
    "signing.keys", "server.connections_per_client", "server.active_requests",
    "server.active_requests_per_client", "server.imaging_time_per_client",
    "server.requests_per_second", "server.header_timeout", "server.request_timeout",
    "server.answer_timeout", "server.minimum_rate", "server.shutdown_delay",
    "server.grace_time", "server.cors_origin", "server.trusted_proxies",
    "server.forwarded_header", "server.proxy_protocol", "server.stats_lifetime", "server.allow",
    "server.allow_enlarge", "server.size_steps", "server.presets_only", "server.page",
    "server.samples", "server.client_hints", "server.fallback", "server.fallback_status",
    "server.explain_errors",
    "download.timeout", "download.connect_timeout", "download.low_speed_time",
    "download.first_byte_timeout", "download.retries", "download.retry_delay",
    "download.breaker_threshold", "download.breaker_open_time", "download.limit",
    "download.limit_per_host", "download.limit_per_client", "download.queue_limit",
    "download.queue_timeout", "download.maximum_bytes", "download.maximum_redirects",
    "download.allow_networks", "download.allow_hosts", "download.deny_hosts", "download.ports",
    "download.order", "download.proxy", "download.ca_file",
    "sources.local_root", "sources.local_lifetime",
    "tracing.propagate", "imaging.deadline", "imaging.processor_time", "imaging.queue_limit",
    "imaging.jobs_per_worker", "imaging.formats", "imaging.fail_on", "imaging.keep_palettes",
    "imaging.avif_later", "imaging.recompress_after", "imaging.derive", "imaging.png_effort",
    "imaging.gif_effort", "imaging.webp_effort", "imaging.avif_effort",
    "imaging.maximum_pixels", "imaging.maximum_result_pixels", "imaging.maximum_frames",
    "imaging.auto_formats", "imaging.jpeg_quality", "imaging.webp_quality",
    "imaging.avif_quality", "imaging.jxl_quality", "imaging.save_data_reduction",
    "freshness.default_lifetime", "freshness.heuristic_lifetime", "freshness.client_default",
    "freshness.minimum_lifetime", "freshness.maximum_lifetime",
    "freshness.stale_while_revalidate", "freshness.stale_if_error", "freshness.error_interval",
    "failures.ttl", "tracing.sample", "prefetch.limit", "prefetch.limit_per_host",
    "prefetch.lists",
    "log.format", "log.level", "log.requests", "log.access_format", "log.access_sample",
  ]

  /// Copies the value by its text, which is whole: `--print-config` writes a usable file.
  func copy(from source: Configuration, to target: inout Configuration) {
    guard let value = RawValue(json5: write(source)) else { return }
    _ = try? read(&target, value)
  }
}

extension Configuration {
  /// Returns this configuration with the values that a reload of `wanted` applies.
  public func reloaded(from wanted: Configuration) -> Configuration {
    var result = self
    for key in Self.keys where key.isLive { key.copy(from: wanted, to: &result) }
    return result
  }
}
