// ServerSettings: the keys `server.…`: listening, connection limits, time-outs and clients' rights.

/// The header field in which proxies name their clients.
public enum ForwardedHeader: String, CaseIterable, Hashable, Sendable {
  /// The field that is present. If both are present and name different clients, neither is trusted:
  /// a proxy that writes one may pass on the other as the client sent it.
  case auto
  /// `X-Forwarded-For`, a list of addresses.
  case xForwardedFor = "x-forwarded-for"
  /// `Forwarded` (RFC 7239).
  case forwarded
}

/// The settings of the server, `server.…`. Every wait and every queue has a limit.
public struct ServerSettings: Hashable, Sendable {
  /// The addresses of clients, 1–32: numeric IPv4 and IPv6 addresses, `0.0.0.0` and `::` for all
  /// interfaces, and unix sockets.
  public var addresses = [ListenItem.host(ListenAddress.loopback)]
  /// The port of addresses without one, 0–65535; 0 selects a free port.
  public var port = 8_080
  /// The permissions of unix sockets, of both listeners. Who may write may connect.
  public var socketMode = 0o660
  /// The address of the operators' listener; `nil` if operators share the listener of clients.
  public var operatorAddress: ListenAddress?
  /// The server's name in `CDN-Loop` (RFC 8586) and `Via`. Requests that name it are refused.
  /// Empty: a random name at each start.
  public var id = ""
  /// Threads that read requests and write responses, 0–256; 0 is one per core.
  public var workers = 0
  /// Maximum number of connections, 16–1,000,000. A further one takes the place of the one that has
  /// been waiting longest for a request; if none waits, it waits itself. Each needs a descriptor:
  /// connections, transfers and disk together must stay below the open-file limit.
  public var connectionLimit = 4_096
  /// Maximum connections of one client, 0–1,000,000; 0 is a quarter of `connectionLimit`. A client
  /// is an IPv4 address or the /64 of an IPv6 address. Trusted proxies and loopback have no limit.
  public var connectionsPerClient = 0
  /// Maximum number of requests that wait for a response, at least 1; more get 503.
  public var maximumActiveRequests = 2_048
  /// Maximum number of requests of one client that wait for a response, 0–1,000,000; 0 is a quarter
  /// of `maximumActiveRequests`. Further ones get 429 `rate_limited`. Clients as for
  /// `connectionsPerClient`, behind trusted proxies as these name them.
  public var maximumActiveRequestsPerClient = 0
  /// Time of imaging workers that one client may use in a minute, at most 1 h; 0: no limit. Beyond
  /// it, 429 `rate_limited` for images that memory and disk do not have.
  public var imagingTimePerClient = Duration.zero
  /// Maximum requests of one client per second, averaged over ten, 0–1,000,000; 0: no limit.
  public var requestsPerSecond = 0
  /// Time-out of an idle keep-alive connection, in whole seconds, 1 s to 1 h.
  public var idleTimeout = Duration.seconds(60)
  /// Time-out for a request's header, 100 ms to 1 h: from the opening of the connection, and of a
  /// later request from its first byte.
  public var headerTimeout = Duration.seconds(10)
  /// Time limit for producing a response, 100 ms to 1 h; then the response is 504
  /// `deadline_exceeded`.
  public var requestTimeout = Duration.seconds(30)
  /// Time to read a response of any length, if the client keeps `minimumRate`; 1 s to 1 d.
  public var answerTimeout = Duration.seconds(120)
  /// Minimum rate at which a client reads a response, in bytes per second, on average; 0 for none.
  /// The time for the whole response is the longer one of `answerTimeout`, and 30 s with its length
  /// divided by this rate.
  public var minimumRate = 64 << 10
  /// How long the server keeps serving after SIGTERM, at most 1 h, while `/stats` says 503.
  public var shutdownDelay = Duration.seconds(5)
  /// Grace period for running requests when the server stops, at most 1 h.
  public var graceTime = Duration.seconds(20)
  /// The origins whose pages may read responses (RFC 6454); `*` for all, empty for none. `nil`:
  /// `*`, or none beside `download.allow_networks`. There, any page on the web could read the
  /// images of a private network through its visitors' browsers.
  public var corsOrigins: [String]?
  /// Networks (CIDR) of the proxies that are trusted to name their clients' addresses; `unix:` for
  /// peers of unix sockets.
  public var trustedProxies: [String] = []
  /// The field in which they do.
  public var forwardedHeader = ForwardedHeader.auto
  /// Whether connections of trusted proxies begin with a header of the PROXY protocol, version 1 or
  /// 2. The operators' listener expects none.
  public var proxyProtocol = false
  /// How long the figures of `/stats` and `/metrics` are reused, at most 10 s; 0: never.
  public var statsLifetime = Duration.milliseconds(250)
  /// The loading options of unsigned requests; `nil`: all with `signing.mode` off, else none.
  public var allow: Set<ClientOption>?
  /// Whether clients may enlarge an image beyond its source's size.
  public var allowsEnlarging = true
  /// Sizes in points to which `w` and `h` of unsigned requests are rounded up, ascending, 1–65,535
  /// each. Empty: sizes stay as they are.
  public var sizeSteps: [Int] = []
  /// Whether clients may request images by preset only.
  public var presetsOnly = false
  /// Whether a request without a format is redirected to a URL that names the negotiated format.
  public var redirectsAuto = false
  /// Whether there is a page for people at `/`.
  public var page = true
  /// URLs of sources that the page offers to try. Every visitor sees them.
  public var samples: [String] = []
  /// Whether responses ask for client hints with `Accept-CH` (RFC 8942).
  public var asksForHints = false
  /// The fallback image of requests that name none; empty: they get the error as JSON.
  public var fallback = ""
  /// The status of responses with a fallback image.
  public var fallbackStatus = FallbackStatus.auto
  /// Whether errors name their cause, and the key of the configuration that decides.
  public var explainsErrors = false

  /// Creates the default settings.
  public init() {}

  /// The addresses of clients, each with its port.
  public var clientAddresses: [ListenAddress] { addresses.map { $0.resolved(port: port) } }

  /// The addresses of all listeners.
  public var listenAddresses: [ListenAddress] {
    clientAddresses + [operatorAddress].compactMap { $0 }
  }
}
