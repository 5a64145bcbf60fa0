// KeyTable: the one table of keys: path, field, allowed values and purpose.
//
// `--print-config`, config/pictor.json5, the rows of docs/configuration.md, the JSON Schema and the
// completion of shells are made from it. A key is a row here, and a field with its default in
// Sources/Model/Settings.

/// A key of the configuration.
public typealias ConfigurationKey = Setting<Configuration>

extension ConfigurationKey {
  /// The environment variable: the path in capitals.
  public var environmentVariable: String {
    Configuration.environmentPrefix + path.uppercased().replacing(".", with: "_")
  }
}

extension Configuration {
  /// All keys, in the order of config/pictor.json5.
  public static let keys =
    serverKeys + namedKeys + memoryKeys + diskKeys + freshnessKeys + downloadKeys + imagingKeys
    + qualityKeys + logKeys + fleetKeys + tracingKeys

  /// Returns the key with this path.
  static func key(_ path: String) -> ConfigurationKey? { keys.first { $0.path == path } }

  private static let hour = Duration.seconds(3_600)
  private static let deadlines = Duration.milliseconds(100)...hour

  private static let serverKeys: [ConfigurationKey] = [
    .atStart(
      "server.address", \.server.addresses, .listenItems,
      "addresses to listen on, one or a list: 0.0.0.0 or :: for all, [::1]:8081, "
        + "unix:/run/pictor.sock"),
    .atStart(
      "server.port", \.server.port, .integer(0...65_535),
      "port of addresses without one; 0 takes any free one"),
    .atStart(
      "server.operator_address", \.server.operatorAddress, .word("", or: .listenAddress),
      "second listener, for /stats, /metrics, /admin: 127.0.0.1:9090 or a unix: path; empty: none"),
    .atStart(
      "server.id", \.server.id,
      .text("letters, digits and -._ up to 64") { $0.isEmpty || ServerTrail.isName($0) },
      "name in CDN-Loop and Via, by which it recognizes its own requests; empty: a random one"),
    .atStart(
      "server.workers", \.server.workers, .integer(0...256),
      "threads that serve; 0: one per usable core"),
    .atStart(
      "server.connections", \.server.connectionLimit, .integer(16...1_000_000),
      "open connections; a further one closes the longest idle one, or waits"),
    .key(
      "server.connections_per_client", \.server.connectionsPerClient, .integer(0...1_000_000),
      "open connections of one client, except trusted proxies and loopback; 0: a quarter of "
        + "server.connections"),
    .key(
      "server.active_requests", \.server.maximumActiveRequests, .integer(1...1_000_000),
      "requests that may wait for an image; beyond it, 503"),
    .key(
      "server.active_requests_per_client", \.server.maximumActiveRequestsPerClient,
      .integer(0...1_000_000),
      "those of one client, except trusted proxies and loopback; beyond it, 429; 0: a quarter of "
        + "server.active_requests"),
    .key(
      "server.imaging_time_per_client", \.server.imagingTimePerClient, .time(.zero...hour),
      "imaging time of one client in a minute; beyond it, 429 for what is not cached; 0s: no limit"),
    .key(
      "server.requests_per_second", \.server.requestsPerSecond, .integer(0...1_000_000),
      "requests of one client, averaged over 10s, hits included; beyond it, 429; 0: no limit"),
    .atStart(
      "server.idle_timeout", \.server.idleTimeout, .time(.seconds(1)...hour),
      "time without traffic after which a connection is closed"),
    .key(
      "server.header_timeout", \.server.headerTimeout, .time(deadlines),
      "time to receive a request's head; stops slow senders"),
    .key(
      "server.request_timeout", \.server.requestTimeout, .time(deadlines),
      "time to respond; beyond it, 504"),
    .key(
      "server.answer_timeout", \.server.answerTimeout, .time(.seconds(1)...(.seconds(86_400))),
      "time to read a response, if the client keeps server.minimum_rate; longer ones have more"),
    .key(
      "server.minimum_rate", \.server.minimumRate, .size(),
      "bytes a second that a client must read, on average: it may be 30s behind, later 2m; "
        + "0: only server.answer_timeout"),
    .key(
      "server.shutdown_delay", \.server.shutdownDelay, .time(.zero...hour),
      "time after SIGTERM in which requests are served and /readyz is 503, for load balancers"),
    .key(
      "server.grace_time", \.server.graceTime, .time(.zero...hour),
      "time for running requests after that; orchestrators kill after about 30s"),
    .key(
      "server.cors_origin", \.server.corsOrigins, .word("auto", or: .origins),
      "origins whose pages may read responses (CORS); \"*\": all; auto: all, or none beside "
        + "download.allow_networks"),
    .key(
      "server.trusted_proxies", \.server.trustedProxies,
      .list(of: "networks such as 10.0.0.0/8 or fd00::/8, or unix:") {
        $0 == ListenAddress.unixPrefix || TextForm.isNetwork($0)
      }, "networks of proxies (unix: for unix sockets) that may name their client"),
    .key(
      "server.forwarded_header", \.server.forwardedHeader, .choice,
      "header field in which they name it; auto: the one that is present"),
    .key(
      "server.proxy_protocol", \.server.proxyProtocol, .flag,
      "whether their connections must begin with a PROXY header (version 1 or 2)"),
    .key(
      "server.stats_lifetime", \.server.statsLifetime, .time(.zero...(.seconds(10))),
      "time for which figures of /stats and /metrics are reused"),
    .key(
      "server.allow", \.server.allow, .word("auto", or: .options),
      "loading options of unsigned requests; auto: all but priority=high if signing.mode is off, "
        + "else none"),
    .key(
      "server.allow_enlarge", \.server.allowsEnlarging, .flag,
      "whether clients may request more pixels than a source has; presets always may"),
    .key(
      "server.size_steps", \.server.sizeSteps, .ascending(in: Sizing.sideRange, limit: 100),
      "sizes to which w and h of unsigned requests round up, such as [320, 640, 1280]; empty: none"),
    .key(
      "server.presets_only", \.server.presetsOnly, .flag,
      "whether clients may request images by preset only; other parameters are 403"),
    .key(
      "server.ignore_parameters", \.server.ignoredParameters,
      .list(of: "names of letters, digits, -, _ and . that /image does not have, such as v") {
        !$0.isEmpty && $0.isPlain(with: "-_.")
      },
      "parameters that change nothing and stay out of the cache key, such as [\"v\"]; others are 400"
    ),
    .atStart(
      "server.redirect_auto", \.server.redirectsAuto, .flag,
      "whether format=auto redirects (302) to the chosen format, for CDNs that ignore Vary"),
    .key("server.page", \.server.page, .flag, "whether / is a page for people"),
    .key(
      "server.samples", \.server.samples,
      .list(of: "absolute http, https or local URLs") { (try? SourceURL(parsing: $0)) != nil },
      "URLs of images that the page offers, such as [\"local:///hills.jpg\"]"),
    .key(
      "server.client_hints", \.server.asksForHints, .flag,
      "whether responses ask for the hints of w=auto, dpr=auto and Save-Data (Accept-CH)"),
    .key(
      "server.fallback", \.server.fallback, .path("a name in fallbacks, or empty"),
      "name in fallbacks for requests without fallback=; empty: an error is JSON"),
    .key(
      "server.fallback_status", \.server.fallbackStatus, .choice,
      "status of a fallback image: auto: that of the failure; 200: for clients that show no other"),
    .key(
      "server.explain_errors", \.server.explainsErrors, .flag,
      "whether error messages name the cause and the key that decides, for operators"),
  ]

  private static let namedKeys: [ConfigurationKey] = [
    .key(
      "presets", \.presets,
      .map(of: "queries such as \"w=300&h=200\", by names of letters, digits, - and _") {
        name, query in !query.isEmpty && name.isPlain()
      }, "queries of /image, by name, for preset=NAME: thumb: \"w=300&h=200\""),
    .key(
      "watermarks", \.watermarks, .images(),
      "URLs of images for watermark=NAME, by name: logo: \"local:///logo.png\""),
    .key(
      "fallbacks", \.fallbacks,
      .images(allowed: "letters, digits, - and _ other than none", except: "none"),
      "URLs of images for fallback=NAME, sent if an image cannot be had: gone: "
        + "\"local:///gone.svg\""),
    .key(
      "hosts", \.hosts, .rules, "rules for the hosts of sources; the first that matches applies"),
    .key(
      "doors", \.doors, .doors,
      "other image servers whose addresses are served, by name: imgproxy: { prefix: \"/img\" }"),
    .key(
      "admin.tokens", \.admin.tokens, .tokens,
      "operators' tokens for /admin, with names and scopes; empty: no /admin"),
  ]

  private static let memoryKeys: [ConfigurationKey] = [
    .atStart(
      "memory.budget", \.memory.budget, .word("auto", or: .size()),
      "bytes that images, bodies, disk writes and jobs share; auto: 0.7 of memory"),
    .atStart(
      "memory.limit", \.memory.limit, .word("auto", or: .size()),
      "bytes of images in memory, at most 1/16 for one; auto: 256MiB, at most 1/8 of memory; "
        + "0: none"),
    .atStart(
      "memory.count_limit", \.memory.countLimit, .integer(0...1_000_000_000),
      "images in memory; 0: as many as fit"),
    .atStart(
      "memory.pressure", \.memory.pressure, .number(0...1),
      "share of the container's memory above which the memory tier shrinks; 0: never"),
  ]

  private static let diskKeys: [ConfigurationKey] = [
    .atStart(
      "disk.path", \.disk.path, .text("the path of a folder") { !$0.isEmpty },
      "folder of the disk tier; relative to the working folder"),
    .atStart(
      "disk.limit", \.disk.limit, .size(),
      "bytes on disk, as du counts them, at most 1/16 for one entry; 0 turns the tier off"),
    .atStart(
      "disk.count_limit", \.disk.countLimit, .integer(0...1_000_000_000),
      "files on disk, each with an inode and 75 bytes of index in memory; 0: no limit; 1: a variant"
    ),
    .atStart(
      "disk.admission", \.disk.admission, .choice,
      "when free-form variants are written: always at once, at the second_request, or auto: at "
        + "once while there is room"),
    .atStart(
      "disk.maximum_age", \.disk.maximumAge, .age, "age after which a file is removed"),
    .atStart(
      "disk.expire_by", \.disk.expireBy, .choice,
      "start of that age: the last use, the last write, or the first write of the key"),
  ]

  private static let freshnessKeys: [ConfigurationKey] = [
    .key(
      "freshness.default_lifetime", \.freshness.defaultLifetime, .time(FreshnessSettings.allowed),
      "freshness lifetime if the origin gives none"),
    .key(
      "freshness.client_default", \.freshness.clientDefault, .time(FreshnessSettings.allowed),
      "lifetime in browsers if the origin gives none; a purge does not reach them"),
    .key(
      "freshness.minimum_lifetime", \.freshness.minimumLifetime, .time(FreshnessSettings.allowed),
      "lower bound of all lifetimes; no-store and private remain in force"),
    .key(
      "freshness.maximum_lifetime", \.freshness.maximumLifetime, .time(FreshnessSettings.allowed),
      "upper bound of all lifetimes"),
    .key(
      "freshness.stale_while_revalidate", \.freshness.staleWhileRevalidate,
      .time(FreshnessSettings.allowed),
      "time after that in which a stale image is served while its origin is asked (RFC 5861)"),
    .key(
      "freshness.stale_if_error", \.freshness.staleIfError, .time(FreshnessSettings.allowed),
      "time after that in which a stale image is served if its origin fails (RFC 5861)"),
    .key(
      "failures.ttl", \.failures.lifetimes,
      .lifetimes(
        of: FailureSettings.statuses,
        allowed: "404, 410, 413, 415 or 422 with a time, such as 404=10m"),
      "how long a failed URL is remembered, by the status of its response (410: the origin's)"),
  ]

  private static let downloadKeys: [ConfigurationKey] = [
    .key(
      "download.timeout", \.download.timeout, .time(deadlines),
      "time for a whole transfer, and before that for a place among them (SDWebImage's 15s)"),
    .key(
      "download.connect_timeout", \.download.connectTimeout, .time(deadlines),
      "time for DNS, connection and TLS"),
    .key(
      "download.first_byte_timeout", \.download.firstByteTimeout, .time(.zero...hour),
      "time from a request to the first byte of its response; 0: no limit of its own"),
    .key(
      "download.retries", \.download.retries, .integer(0...5),
      "retries after a failure before the first byte, or after 502 to 504 with a short Retry-After"),
    .key(
      "download.breaker_threshold", \.download.breakerThreshold, .integer(0...1_000_000),
      "failed connections in a row that open a host's circuit (502 at once), for 30s, later up to "
        + "5m; 0: never"),
    .key(
      "download.order", \.download.order, .choice, "order of waiting downloads of one priority"),
    .key("download.limit", \.download.limit, .integer(1...10_000), "transfers at once"),
    .key(
      "download.limit_per_host", \.download.limitPerHost, .integer(1...10_000),
      "transfers at once from one host and port (SDWebImage's 6)"),
    .key(
      "download.limit_per_client", \.download.limitPerClient, .integer(0...10_000),
      "transfers of one client at once while others wait, except trusted proxies and loopback; "
        + "0: a quarter of download.limit"),
    .key(
      "download.queue_limit", \.download.queueLimit, .integer(0...1_000_000),
      "downloads that may wait for a place; beyond it, 503"),
    .key(
      "download.maximum_bytes", \.download.maximumBytes, .size(atLeast: 1),
      "bytes of one source; beyond it, 413"),
    .key(
      "download.allow_networks", \.download.allowNetworks,
      .list(of: "networks such as 10.0.0.0/8 or fd00::/8", where: TextForm.isNetwork),
      "networks that the address check lets through; it refuses all that are not public"),
    .key(
      "download.allow_hosts", \.download.allowHosts, .sourcePatterns,
      "hosts that sources may be loaded from, with port or path if wanted; empty: all"),
    .key(
      "download.deny_hosts", \.download.denyHosts, .sourcePatterns,
      "hosts that sources may not be loaded from; overrides allow_hosts"),
    .key(
      "download.ports", \.download.ports, .ports,
      "ports that sources may be loaded from; allow_hosts with a port adds it; empty: all"),
    .key(
      "download.proxy", \.download.proxy, .word("", or: .proxy),
      "HTTP proxy for all sources, http://host:port; empty: none"),
    .key(
      "download.ca_file", \.download.caFile, .path("the path of a file"),
      "PEM file of trusted certificate authorities; empty: the system's"),
    .key(
      "sources.local_root", \.sources.localRoot, .path("the path of a folder, or nothing"),
      "folder for local:/// URLs; empty turns them off"),
    .key(
      "sources.base_url", \.sources.baseURL, .baseURL,
      "what url= without a scheme is appended to, such as https://example.com; empty: 400"),
    .key(
      "sources.replace", \.sources.replacements,
      .map(of: "beginnings of sources and what replaces them") { pattern, _ in !pattern.isEmpty },
      "beginnings of url= and what replaces them: { \"img:\": \"https://img.example.com/\" }; * is a "
        + "part without a slash, ${1} the first of them"),
    .key(
      "sources.allow", \.sources.allowed,
      .list(of: "beginnings of URLs such as https://example.com/*/") { text in
        ["http://", "https://", "s3://", "local:///"].contains { text.hasPrefix($0) }
      },
      "beginnings of the URLs that may be loaded, https://example.com/public/; []: all"),
    .key(
      "sources.bodies", \.sources.bodies, .choice,
      "whose bodies are sources (POST /image): off, trusted (signed or with a token) or all"),
    .key(
      "sources.body_lifetime", \.sources.bodyLifetime, .time(.zero...(.seconds(365 * 86_400))),
      "time in which the same body has the same results without work; 0s: no body is stored"),
    .key(
      "sources.local_lifetime", \.sources.localLifetime, .time(.zero...(.seconds(365 * 86_400))),
      "time in which results of a local file are served without checking the file"),
  ]

  private static let imagingKeys: [ConfigurationKey] = [
    .atStart(
      "imaging.workers", \.imaging.workers, .integer(0...256),
      "worker processes; 0: one per usable core, at most one per 160MiB of memory"),
    .key(
      "imaging.deadline", \.imaging.jobDeadline, .time(deadlines),
      "time for one image; then its worker is killed"),
    .key(
      "imaging.processor_time", \.imaging.processorTime, .time(deadlines),
      "processor time for one image, all threads of its worker together; beyond it, 422"),
    .key(
      "imaging.queue_limit", \.imaging.queueLimit, .integer(0...1_000_000),
      "jobs that may wait for a worker; beyond it, 503"),
    .atStart(
      "imaging.worker_memory", \.imaging.workerMemory, .word("auto", or: .size(atLeast: 64 << 20)),
      "bytes that a worker may allocate; beyond it, 503; auto: 2GiB, at most half of memory"),
    .atStart(
      "imaging.sandbox", \.imaging.sandbox, .choice,
      "required: workers are sealed by Landlock and seccomp, or nothing starts; if_possible: by "
        + "what the kernel has; off: not"),
    .key("imaging.formats", \.imaging.formats, .formats(), "formats that are decoded"),
    .key(
      "imaging.auto_formats", \.imaging.autoFormats,
      .formats(of: ImageFormat.negotiable, mayBeEmpty: true),
      "formats that format=auto offers to clients whose Accept names them, the best first; "
        + "[]: none"),
    .key(
      "imaging.keep_format", \.imaging.keepsFormat, .flag,
      "whether requests without format keep the source's, as with format=source"),
    .key(
      "imaging.maximum_pixels", \.imaging.maximumPixels, .integer(1...10_000_000_000),
      "pixels of a source, all frames together; beyond it, 422"),
    .key(
      "imaging.maximum_result_pixels", \.imaging.maximumResultPixels, .integer(1...1_000_000_000),
      "pixels of a result; larger ones are scaled down; limitbytes is at most 4 times as many"),
    .key(
      "imaging.maximum_frames", \.imaging.maximumFrames, .integer(1...100_000),
      "frames of a source; beyond it, 422"),
    .key(
      "imaging.fail_on", \.imaging.failOn, .choice,
      "damage that is 422: warning: any lost pixels, error: a broken structure, truncated: an "
        + "early end, none: only undecodable sources"),
    .key(
      "imaging.avif_later", \.imaging.defersAVIF, .flag,
      "whether WebP, JPEG or PNG is served until a negotiated AVIF is encoded"),
    .key(
      "imaging.recompress_after", \.imaging.recompressAfter, .integer(0...1_000_000),
      "hits in memory after which idle workers encode an image once with more effort; 0: never"),
  ]

  /// Qualities for requests that name none.
  private static let qualityKeys: [ConfigurationKey] = ImageFormat.lossy.map { format in
    .key(
      "imaging.\(format.rawValue)_quality", \.imaging.qualities[lossy: format],
      .integer(OutputOptions.qualityRange), "quality of \(format.traits.title) without quality=")
  }

  private static let logKeys: [ConfigurationKey] = [
    .key(
      "imaging.save_data_reduction", \.imaging.saveDataReduction, .integer(0...99),
      "how much lower these qualities are for clients that send Save-Data: on; 0: not lower"),
    .key(
      "prefetch.limit", \.prefetch.limit, .integer(1...1_000),
      "images prefetched at once, in all lists together (SDWebImage's 3)"),
    .key(
      "log.format", \.log.format, .choice, "text for people, json and logfmt for machines"),
    .key("log.level", \.log.level, .choice, "lowest level that is written"),
    .key(
      "log.requests", \.log.requests, .choice,
      "requests logged at info: all (slows memory hits), misses (all but memory hits, /stats, "
        + "/metrics), errors (failures)"),
    .key(
      "log.access_format", \.log.access.format, .choice,
      "format of the lines of requests: log (as log.format), json, logfmt, combined (Apache's)"),
    .atStart(
      "log.access_path", \.log.access.path, .path("the path of a file, or nothing"),
      "file for the lines of requests, reopened on SIGHUP, /dev/stdout or /dev/stderr; empty: the "
        + "log"),
  ]

  private static let fleetKeys: [ConfigurationKey] = [
    .atStart(
      "fleet.redis", \.fleet.redis, .word("", or: .redis),
      "address of the Redis through which machines share purges and variants; env:NAME or "
        + "file:/path for one with a password; empty: none"),
    .atStart(
      "fleet.key_prefix", \.fleet.keyPrefix,
      .text("1 to 64 letters, digits, and characters of -_.:{}") {
        (1...64).contains($0.utf8.count) && $0.isPlain(with: "-_.:{}")
      }, "beginning of the names of keys in Redis; one for each fleet"),
    .atStart(
      "fleet.timeout", \.fleet.timeout, .time(.milliseconds(1)...(.seconds(10))),
      "longest wait for a reply of Redis; of the bucket, five times as long"),
    .atStart(
      "fleet.retry_interval", \.fleet.retryInterval, .time(.milliseconds(10)...(.seconds(60))),
      "time after a failure in which Redis, or the bucket, is not asked; doubles with each failure, "
        + "to 8 intervals"),
    .atStart(
      "fleet.variant_limit", \.fleet.variantLimit, .size(),
      "bytes of the largest variant that machines share by Redis; 0: none"),
    .atStart(
      "fleet.s3.bucket", \.fleet.bucket.name,
      .text("the name of a bucket, or nothing") { $0.isEmpty || SourceURL.isBucket($0) },
      "bucket through which machines share what does not fit into Redis; empty: none"),
    .atStart(
      "fleet.s3.endpoint", \.fleet.bucket.access.endpoint, .word("", or: .endpoint),
      "http or https with host and port; empty: that of the region at AWS"),
    .atStart(
      "fleet.s3.region", \.fleet.bucket.access.region, .region, "region that signatures name"),
    .atStart(
      "fleet.s3.prefix", \.fleet.bucket.prefix,
      .text(
        "up to 256 letters, digits, and characters of -_./, without empty segments, . and ..",
        where: SharedBucketSettings.isPrefix),
      "beginning of the names of objects; one for each fleet"),
    .atStart(
      "fleet.s3.access_key", \.fleet.bucket.access.accessKey, .word("", or: .accessKey),
      "access key: literal, env:NAME or file:/path; empty: requests are not signed"),
    .atStart(
      "fleet.s3.secret_key", \.fleet.bucket.access.secretKey, .word("", or: .reference),
      "secret access key: env:NAME or file:/path"),
    .atStart(
      "fleet.s3.session_token", \.fleet.bucket.access.sessionToken, .word("", or: .reference),
      "token of temporary credentials: env:NAME or file:/path"),
    .atStart(
      "fleet.s3.addressing", \.fleet.bucket.access.addressing, .word("auto", or: .choice),
      "where requests name the bucket: path, virtual (in the host), or auto: in the host at AWS"),
    .atStart(
      "fleet.s3.ca_file", \.fleet.bucket.caFile, .path("the path of a file, or nothing"),
      "certificate authorities for the endpoint, in PEM; empty: those of the system"),
  ]

  private static let tracingKeys: [ConfigurationKey] = [
    .key(
      "tracing.propagate", \.tracing.propagate, .sourcePatterns,
      "hosts whose origins get the traceparent and tracestate of the request that starts a "
        + "download; \"*\": all"),
    .atStart(
      "tracing.endpoint", \.tracing.endpoint,
      .text("an http or https URL with a path, without user and fragment; or nothing") {
        $0.isEmpty || TextForm.isCollector($0)
      },
      "URL of a collector for spans (OTLP/HTTP, JSON), such as http://127.0.0.1:4318/v1/traces; "
        + "empty: none"),
    .key(
      "tracing.sample", \.tracing.sample, .number(0...1),
      "share of requests that are recorded, unless a trusted proxy's traceparent decides"),
    .atStart(
      "tracing.headers", \.tracing.headers, .collectorFields,
      "header fields for the collector, by name: literal, env:NAME or file:/path"),
    .key(
      "signing.mode", \.signing.mode, .choice,
      "which requests need a signature: none; those beyond plain sizes and presets; all"),
    .key(
      "signing.keys", \.signing.keys, .signingKeys,
      "keys id:secret of signatures: the first signs, all are accepted; docs/signing.md"),
  ]
}
