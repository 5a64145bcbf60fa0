// ConfigurationKeys: the table of keys, with defaults, ranges and environment variables.
//
// Also the source of config/pictor.json5 and docs/configuration.md.

import Model

/// A setting: its path, its purpose, and how it is read and written.
public struct ConfigurationKey: Sendable {
  /// The path, `section.name`.
  public let path: String
  /// The purpose, in one line.
  public let purpose: String
  /// The allowed values, as text for error messages.
  public let allowed: String
  /// Applies a value, or returns `false` if it is not allowed. Throws if only a part is not allowed, or if
  /// messages must not repeat the value.
  let read: @Sendable (inout Configuration, RawValue) throws(MemberProblems) -> Bool
  /// The value as a JSON5 literal.
  let write: @Sendable (Configuration) -> String

  /// The environment variable: the path in capitals.
  public var environmentVariable: String {
    "PICTOR_" + path.uppercased().replacing(".", with: "_")
  }

  /// Returns the value in `configuration` as a JSON5 literal.
  public func literal(in configuration: Configuration) -> String { write(configuration) }
}

extension Configuration {
  /// All keys, in the order of config/pictor.json5.
  public static let keys = firstKeys + imagingKeys + lastKeys

  /// The keys before those of imaging.
  private static let firstKeys: [ConfigurationKey] = [
    .text(
      "server.address", \.server.address, "numeric address to listen on; 0.0.0.0 or :: for all",
      "a numeric IPv4 or IPv6 address", isNumericAddress),
    .integer("server.port", \.server.port, "port to listen on; 0 takes any free one", 0...65_535),
    .text(
      "server.id", \.server.id,
      "name in CDN-Loop and Via, by which the server recognizes its own requests; empty: a "
        + "random one",
      "letters, digits and -._ up to 64"
    ) { $0.isEmpty || ServerTrail.isName($0) },
    .integer("server.workers", \.server.workers, "threads that serve; 0: one per core", 0...256),
    .integer(
      "server.connections", \.server.connectionLimit,
      "open connections at once; further ones wait", 16...1_000_000),
    .integer(
      "server.active_requests", \.server.maximumActiveRequests,
      "requests that may wait for an image at once; beyond it, 503", 1...1_000_000),
    .duration(
      "server.idle_timeout", \.server.idleTimeout,
      "time without traffic after which a connection is closed",
      .seconds(1)...(.seconds(3_600))),
    .duration(
      "server.header_timeout", \.server.headerTimeout,
      "time to receive a request's head; stops slow senders",
      .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "server.request_timeout", \.server.requestTimeout, "time to respond; beyond it, 504",
      .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "server.answer_timeout", \.server.answerTimeout,
      "time for a client to read its response; stops slow readers",
      .seconds(1)...(.seconds(86_400))),
    .duration(
      "server.shutdown_delay", \.server.shutdownDelay,
      "time after SIGTERM in which requests are served and /stats is 503, for load balancers",
      .zero...(.seconds(3_600))),
    .duration(
      "server.grace_time", \.server.graceTime,
      "time for running requests after that; orchestrators kill after about 30s",
      .zero...(.seconds(3_600))),
    .origins(
      "server.cors_origin", \.server.corsOrigins,
      "origins whose pages may read responses (CORS), such as https://example.com; \"*\": all"),

    .list(
      "server.trusted_proxies", \.server.trustedProxies,
      "networks of proxies that are trusted to name their client, for the log",
      "networks such as 10.0.0.0/8 or fd00::/8", isNetwork),
    .choice(
      "server.forwarded_header", \.server.forwardedHeader,
      "header field in which they name it; auto: the one that is present"),

    .boolean(
      "server.allow_reload", \.server.allowsReload,
      "whether clients may use refresh, cache=bypass, retry and Cache-Control: no-cache"),
    .boolean(
      "server.allow_enlarge", \.server.allowsEnlarging,
      "whether clients may request more pixels than a source has; presets always may"),
    .boolean(
      "server.presets_only", \.server.presetsOnly,
      "whether clients may request images by preset only; other parameters are 403"),
    .boolean(
      "server.redirect_auto", \.server.redirectsAuto,
      "whether format=auto redirects (302) to the chosen format, for CDNs that ignore Vary"),
    .boolean(
      "server.explain_errors", \.server.explainsErrors,
      "whether error messages name the key that decides, as the log does; helps operators"),

    .map(
      "presets", \.presets, "queries of /image, by name, for preset=NAME: thumb: \"w=300&h=200\"",
      "an object of queries such as \"w=300&h=200\", by names of letters, digits, - and _"
    ) { name, query in !query.isEmpty && isName(name) },
    .map(
      "watermarks", \.watermarks,
      "URLs of images for watermark=NAME, by name: logo: \"local:///logo.png\"",
      "an object of http, https or local URLs, by names of letters, digits, - and _"
    ) { name, url in isName(name) && (try? SourceURL(parsing: url)) != nil },

    .hosts("hosts", \.hosts, "rules for the hosts of sources; the first that matches applies"),

    .list(
      "admin.tokens", \.admin.tokens,
      "secrets for /admin, as Authorization: Bearer; empty: no /admin",
      "tokens of 16 characters or more, without blanks or commas", isToken),

    .sizeOrAuto(
      "memory.limit", \.memory.limit,
      "bytes of images in memory, at most 1/16 for one; auto: 256MiB, at most 1/8 of "
        + "memory; 0: none"),
    .integer(
      "memory.count_limit", \.memory.countLimit,
      "images in memory; 0: as many as fit", 0...1_000_000_000),
    .number(
      "memory.pressure", \.memory.pressure,
      "share of the container's memory in use above which the memory tier shrinks; 0: never", 0...1),

    .text(
      "disk.path", \.disk.path, "folder of the disk tier; relative to the working folder",
      "the path of a folder"
    ) { !$0.isEmpty },
    .size(
      "disk.limit", \.disk.limit,
      "bytes on disk, as du counts them, at most 1/16 for one entry; 0 turns the tier off"),
    .integer(
      "disk.count_limit", \.disk.countLimit,
      "files on disk, each with an inode and 70 bytes of index in memory; 0: no limit",
      0...1_000_000_000),
    .number(
      "disk.source_share", \.disk.sourceShare,
      "share of both limits for sources; variants have the rest", 0.01...0.99),
    .optionalDuration(
      "disk.maximum_age", \.disk.maximumAge, "age after which a file is removed"),
    .choice(
      "disk.expire_by", \.disk.expireBy,
      "start of that age: the last use, the last write, or the first write of the key"),
    .duration(
      "disk.clean_interval", \.disk.cleanInterval, "time between searches for old files",
      .seconds(1)...(.seconds(86_400))),
    .number(
      "disk.clean_fraction", \.disk.cleanFraction,
      "part of a share that a clean at its limit leaves, so that cleans are rare", 0.1...0.95),
    .size(
      "disk.promotion_threshold", \.disk.promotionThreshold,
      "bodies up to this size move to memory when read; larger ones are sent from the file"),
    .sizeOrAuto(
      "disk.write_queue_limit", \.disk.writeQueueLimit,
      "bytes that may wait to be written; beyond it, nothing is; auto: 64MiB, at most 1/16 "
        + "of memory"),

    .duration(
      "freshness.default_lifetime", \.freshness.defaultLifetime,
      "freshness lifetime if the origin gives none",
      FreshnessSettings.allowed),
    .duration(
      "freshness.heuristic_lifetime", \.freshness.heuristicLifetime,
      "upper bound of the lifetime from Last-Modified, a tenth of its age; 0s: not used",
      FreshnessSettings.allowed),
    .duration(
      "freshness.client_default", \.freshness.clientDefault,
      "lifetime in browsers if the origin gives none; a purge does not reach them",
      FreshnessSettings.allowed),
    .duration(
      "freshness.minimum_lifetime", \.freshness.minimumLifetime,
      "lower bound of all lifetimes; no-store and private remain in force",
      FreshnessSettings.allowed),
    .duration(
      "freshness.maximum_lifetime", \.freshness.maximumLifetime,
      "upper bound of all lifetimes", FreshnessSettings.allowed),
    .duration(
      "freshness.stale_while_revalidate", \.freshness.staleWhileRevalidate,
      "time after that in which a stale image is served while its origin is asked (RFC 5861)",
      FreshnessSettings.allowed),
    .duration(
      "freshness.stale_if_error", \.freshness.staleIfError,
      "time after that in which a stale image is served if its origin fails (RFC 5861)",
      FreshnessSettings.allowed),
    .duration(
      "freshness.error_interval", \.freshness.errorInterval,
      "time for which a failed origin is not asked for the same image, which is served stale",
      .zero...(.seconds(3_600))),

    .lifetimes(
      "failures.ttl", \.failures.lifetimes,
      "how long a failed URL is remembered, by the status of its response (410: the origin's)",
      of: FailureSettings.statuses, "404, 410, 413, 415 or 422 with a time, such as 404=10m"),
    .integer(
      "failures.limit", \.failures.limit, "failed URLs remembered; 0: none", 0...10_000_000),

    .duration(
      "download.timeout", \.download.timeout, "time for a whole transfer (SDWebImage's 15s)",
      .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "download.connect_timeout", \.download.connectTimeout,
      "time for DNS, connection and TLS; dead hosts fail early",
      .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "download.low_speed_time", \.download.lowSpeedTime,
      "time an origin may send less than 128 bytes a second, or nothing yet",
      .seconds(1)...(.seconds(3_600))),
    .duration(
      "download.first_byte_timeout", \.download.firstByteTimeout,
      "time from a request to the first byte of its response; 0: no limit of its own",
      .zero...(.seconds(3_600))),
    .integer(
      "download.retries", \.download.retries,
      "retries after a failure before the first byte, or after 502 to 504 with a short "
        + "Retry-After", 0...5
    ),
    .duration(
      "download.retry_delay", \.download.retryDelay,
      "pause before a retry, plus or minus half of it",
      .milliseconds(1)...(.seconds(10))),
    .integer(
      "download.breaker_threshold", \.download.breakerThreshold,
      "failed connections in a row, or four times as many failing URLs, that open a host's "
        + "circuit (502 at once); 0: never", 0...1_000_000),
    .duration(
      "download.breaker_open_time", \.download.breakerOpenTime,
      "time a circuit stays open before a single probe; doubles with each failed probe, up "
        + "to 5m",
      .milliseconds(1)...(.seconds(300))),
    .choice(
      "download.order", \.download.order, "order of waiting downloads of one priority"),
    .integer("download.limit", \.download.limit, "transfers at once", 1...10_000),
    .integer(
      "download.limit_per_host", \.download.limitPerHost,
      "transfers at once from one host and port (SDWebImage's 6)", 1...10_000),
    .integer(
      "download.queue_limit", \.download.queueLimit,
      "downloads that may wait for a place; beyond it, 503", 0...1_000_000),
    .duration(
      "download.queue_timeout", \.download.queueTimeout,
      "time a download may wait for a place; after it, 503",
      .milliseconds(100)...(.seconds(3_600))),
    .size(
      "download.maximum_bytes", \.download.maximumBytes, "bytes of one source; beyond it, 413",
      atLeast: 1),
    .sizeOrAuto(
      "download.maximum_bytes_in_flight", \.download.maximumBytesInFlight,
      "bytes of bodies being received; beyond it, 503; auto: 512MiB, at most 1/8 of memory",
      atLeast: 1),
    .integer(
      "download.maximum_redirects", \.download.maximumRedirects, "redirects that are followed",
      0...50),
    .list(
      "download.allow_networks", \.download.allowNetworks,
      "networks that the address check lets through; it refuses loopback, private and "
        + "other special ones", "networks such as 10.0.0.0/8 or fd00::/8", isNetwork),
    .list(
      "download.allow_hosts", \.download.allowHosts,
      "hosts that sources may be loaded from; empty: all",
      "hosts such as example.com or *.example.com", isHostPattern),
    .list(
      "download.deny_hosts", \.download.denyHosts,
      "hosts that sources may not be loaded from; overrides allow_hosts",
      "hosts such as example.com or *.example.com", isHostPattern),
    .proxy(
      "download.proxy", \.download.proxy,
      "HTTP proxy for all sources, http://host:port; a host rule's proxy overrides it; "
        + "empty: none"),
    .text(
      "download.ca_file", \.download.caFile,
      "PEM file of trusted certificate authorities; empty: the system's", "the path of a file"
    ) { _ in true },

    .text(
      "sources.local_root", \.sources.localRoot,
      "folder for local:/// URLs; empty turns them off", "the path of a folder, or nothing"
    ) { _ in true },
    .duration(
      "sources.local_lifetime", \.sources.localLifetime,
      "time in which results of a local file are served without checking the file",
      .zero...(.seconds(365 * 86_400))),
  ]

  /// The keys after those of imaging.
  private static let lastKeys: [ConfigurationKey] = [
    .integer(
      "prefetch.limit", \.prefetch.limit,
      "images prefetched at once, in all lists together (SDWebImage's 3)", 1...1_000),
    .integer(
      "prefetch.limit_per_host", \.prefetch.limitPerHost,
      "images prefetched at once from one host; leaves room for clients",
      1...1_000),
    .integer(
      "prefetch.lists", \.prefetch.lists, "lists prefetched at once; beyond it, 503", 1...1_000),

    .choice("log.format", \.log.format, "text for people, json for machines"),
    .choice(
      "log.level", \.log.level,
      "lowest level that is written; memory hits are debug, unless log.requests says otherwise"),
    .choice(
      "log.requests", \.log.requests,
      "requests logged at info: all (slows memory hits), misses (all but memory hits and "
        + "/stats), errors (failures)"),
  ]

  /// Returns the key with this path.
  static func key(_ path: String) -> ConfigurationKey? { keys.first { $0.path == path } }
}
