// ServerSettings: the keys `server.…`: listening, connection limits, time-outs and clients' rights.

/// The header field in which proxies name their clients.
public enum ForwardedHeader: String, CaseIterable, Hashable, Sendable {
  /// The field that is present. If both are present and name different clients, neither is trusted: a
  /// proxy that writes one may pass on the other as the client sent it.
  case auto
  /// `X-Forwarded-For`, a list of addresses.
  case xForwardedFor = "x-forwarded-for"
  /// `Forwarded` (RFC 7239).
  case forwarded
}

/// The settings of the server, `server.…`. Every wait and every queue has a limit.
public struct ServerSettings: Hashable, Sendable {
  /// A numeric IPv4 or IPv6 address; `0.0.0.0` or `::` for all interfaces.
  public var address = "127.0.0.1"
  /// The port, 0–65535; 0 selects a free port.
  public var port = 8_080
  /// The server's name in `CDN-Loop` (RFC 8586) and `Via`. Requests that name it are refused. Empty:
  /// a random name at each start.
  public var id = ""
  /// Threads that read requests and write responses, 0–256; 0 is one per core.
  public var workers = 0
  /// Maximum number of connections, 16–1,000,000; further clients wait in the kernel's backlog. Each
  /// needs a descriptor: connections, transfers and disk together must stay below the open-file limit.
  public var connectionLimit = 4_096
  /// Maximum number of requests waiting for a response, at least 1; further ones get 503 `overloaded`.
  public var maximumActiveRequests = 2_048
  /// Time-out of an idle keep-alive connection, in whole seconds, 1 s to 1 h.
  public var idleTimeout = Duration.seconds(60)
  /// Time-out for a request's header, 100 ms to 1 h. On a reused connection it starts when
  /// `idleTimeout` ends, because libmicrohttpd does not report a later request's first byte.
  public var headerTimeout = Duration.seconds(10)
  /// Time limit for producing a response, 100 ms to 1 h; then the response is 504
  /// `deadline_exceeded`.
  public var requestTimeout = Duration.seconds(30)
  /// Time a client may take to read a response, 1 s to 1 d, in addition to its length divided by the
  /// minimum rate.
  public var answerTimeout = Duration.seconds(120)
  /// How long the server keeps serving after SIGTERM, at most 1 h, while `/stats` says 503.
  public var shutdownDelay = Duration.seconds(5)
  /// Grace period for running requests when the server stops, at most 1 h.
  public var graceTime = Duration.seconds(20)
  /// The origins whose pages may read responses (RFC 6454); `*` for all, empty for none.
  public var corsOrigins = ["*"]
  /// Networks (CIDR) of the proxies that are trusted to name their clients' addresses.
  public var trustedProxies: [String] = []
  /// The field in which they do.
  public var forwardedHeader = ForwardedHeader.auto
  /// Whether clients may force revalidation of fresh images. Covers `refresh`, `cache=bypass`,
  /// `retry`, and `no-cache`, `max-age` and `min-fresh` in `Cache-Control`.
  public var allowsReload = true
  /// Whether clients may enlarge an image beyond its source's size.
  public var allowsEnlarging = true
  /// Whether clients may request images by preset only.
  public var presetsOnly = false
  /// Whether a request without a format is redirected to a URL that names the negotiated format.
  public var redirectsAuto = false
  /// Whether errors name the key of the configuration that decides.
  public var explainsErrors = false

  /// Creates the default settings.
  public init() {}
}
