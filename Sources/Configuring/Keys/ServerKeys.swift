// ServerKeys: the keys `server.…`.

import Model

extension Configuration {
  /// The keys of the server, in the order of config/pictor.json5.
  static let serverKeys: [ConfigurationKey] = [
    .listenItems(
      "server.address", at: \.server.addresses,
      purpose:
        "addresses to listen on, one or a list: 0.0.0.0 or :: for all, [::1]:8081, unix:/run/pictor.sock"
    ).atStart,
    .integer(
      "server.port", at: \.server.port,
      purpose: "port of addresses without one; 0 takes any free one", in: 0...65_535
    ).atStart,
    .listenAddress(
      "server.operator_address", at: \.server.operatorAddress,
      purpose:
        "second listener, for /stats, /metrics, /admin: 127.0.0.1:9090 or a unix: path; empty: "
        + "none"
    ).atStart,
    .permissions(
      "server.socket_mode", at: \.server.socketMode,
      purpose: "permissions of unix sockets; writers may connect"
    ).atStart,
    .text(
      "server.id", at: \.server.id,
      purpose:
        "name in CDN-Loop and Via, by which it recognizes its own requests; empty: a random one",
      allowed: "letters, digits and -._ up to 64"
    ) { $0.isEmpty || ServerTrail.isName($0) }.atStart,
    .integer(
      "server.workers", at: \.server.workers, purpose: "threads that serve; 0: one per core",
      in: 0...256
    ).atStart,
    .integer(
      "server.connections", at: \.server.connectionLimit,
      purpose:
        "open connections; a further one closes the longest idle one, or waits",
      in: 16...1_000_000
    ).atStart,
    .integer(
      "server.connections_per_client", at: \.server.connectionsPerClient,
      purpose:
        "open connections of one client, except trusted proxies and loopback; 0: a quarter of "
        + "server.connections", in: 0...1_000_000),
    .integer(
      "server.active_requests", at: \.server.maximumActiveRequests,
      purpose: "requests that may wait for an image; beyond it, 503", in: 1...1_000_000),
    .integer(
      "server.active_requests_per_client", at: \.server.maximumActiveRequestsPerClient,
      purpose:
        "those of one client, except trusted proxies and loopback; beyond it, 429; 0: a quarter of "
        + "server.active_requests", in: 0...1_000_000),
    .duration(
      "server.imaging_time_per_client", at: \.server.imagingTimePerClient,
      purpose:
        "imaging time of one client in a minute; beyond it, 429 for what is not cached; 0s: no limit",
      in: .zero...(.seconds(3_600))),
    .integer(
      "server.requests_per_second", at: \.server.requestsPerSecond,
      purpose:
        "requests of one client, averaged over 10s, hits included; beyond it, 429; 0: no limit",
      in: 0...1_000_000),
    .duration(
      "server.idle_timeout", at: \.server.idleTimeout,
      purpose: "time without traffic after which a connection is closed",
      in: .seconds(1)...(.seconds(3_600))
    ).atStart,
    .duration(
      "server.header_timeout", at: \.server.headerTimeout,
      purpose: "time to receive a request's head; stops slow senders",
      in: .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "server.request_timeout", at: \.server.requestTimeout,
      purpose: "time to respond; beyond it, 504",
      in: .milliseconds(100)...(.seconds(3_600))),
    .duration(
      "server.answer_timeout", at: \.server.answerTimeout,
      purpose:
        "time to read a response, if the client keeps server.minimum_rate; longer ones have more",
      in: .seconds(1)...(.seconds(86_400))),
    .size(
      "server.minimum_rate", at: \.server.minimumRate,
      purpose:
        "bytes a second that a client must read, on average: it may be 30s behind, later 2m; "
        + "0: only server.answer_timeout"),
    .duration(
      "server.shutdown_delay", at: \.server.shutdownDelay,
      purpose:
        "time after SIGTERM in which requests are served and /readyz is 503, for load balancers",
      in: .zero...(.seconds(3_600))),
    .duration(
      "server.grace_time", at: \.server.graceTime,
      purpose: "time for running requests after that; orchestrators kill after about 30s",
      in: .zero...(.seconds(3_600))),
    .origins(
      "server.cors_origin", at: \.server.corsOrigins,
      purpose:
        "origins whose pages may read responses (CORS); \"*\": all; auto: all, or none beside "
        + "download.allow_networks"),

    .list(
      "server.trusted_proxies", at: \.server.trustedProxies,
      purpose:
        "networks of proxies (unix: for unix sockets) that may name their client",
      allowed: "networks such as 10.0.0.0/8 or fd00::/8, or unix:"
    ) { $0 == ListenAddress.unixPrefix || isNetwork($0) },
    .choice(
      "server.forwarded_header", \.server.forwardedHeader,
      "header field in which they name it; auto: the one that is present"),
    .boolean(
      "server.proxy_protocol", at: \.server.proxyProtocol,
      purpose:
        "whether their connections must begin with a PROXY header (version 1 or 2)"
    ),

    .duration(
      "server.stats_lifetime", at: \.server.statsLifetime,
      purpose:
        "time for which figures of /stats and /metrics are reused",
      in: .zero...(.seconds(10))),

    .clientOptions(
      "server.allow", at: \.server.allow,
      purpose:
        "loading options of unsigned requests; auto: all but priority=high if signing.mode is off, else none"
    ),
    .boolean(
      "server.allow_enlarge", at: \.server.allowsEnlarging,
      purpose: "whether clients may request more pixels than a source has; presets always may"),
    .ascending(
      "server.size_steps", at: \.server.sizeSteps,
      purpose:
        "sizes to which w and h of unsigned requests round up, such as [320, 640, 1280]; empty: none",
      in: Sizing.sideRange, limit: 100),
    .boolean(
      "server.presets_only", at: \.server.presetsOnly,
      purpose: "whether clients may request images by preset only; other parameters are 403"),
    .boolean(
      "server.redirect_auto", at: \.server.redirectsAuto,
      purpose: "whether format=auto redirects (302) to the chosen format, for CDNs that ignore Vary"
    ).atStart,
    .boolean(
      "server.page", at: \.server.page,
      purpose: "whether / is a page for people"
    ),
    .list(
      "server.samples", at: \.server.samples,
      purpose: "URLs of images that the page offers, such as [\"local:///hills.jpg\"]",
      allowed: "absolute http, https or local URLs"
    ) { (try? SourceURL(parsing: $0)) != nil },
    .boolean(
      "server.client_hints", at: \.server.asksForHints,
      purpose:
        "whether responses ask for the hints of w=auto, dpr=auto and Save-Data (Accept-CH)"
    ),
    .text(
      "server.fallback", at: \.server.fallback,
      purpose: "name in fallbacks for requests without fallback=; empty: an error is JSON",
      allowed: "a name in fallbacks, or empty"
    ) { _ in true },
    .choice(
      "server.fallback_status", \.server.fallbackStatus,
      "status of a fallback image: auto: that of the failure; 200: for clients that show no other"),
    .boolean(
      "server.explain_errors", at: \.server.explainsErrors,
      purpose:
        "whether error messages name the cause and the key that decides, for operators"
    ),
  ]
}
