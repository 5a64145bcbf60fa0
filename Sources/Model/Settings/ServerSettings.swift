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

/// The settings of the server, `server.…`; `KeyTable` has purposes and ranges. Every wait and every
/// queue has a limit.
public struct ServerSettings: Hashable, Sendable {
  /// 1–32 addresses of clients.
  public var addresses = [ListenItem.host(ListenAddress.loopback)]
  /// The port of addresses without one.
  public var port = 8_080
  /// The permissions of unix sockets, of both listeners. Who may write may connect.
  public var socketMode = 0o660
  /// The operators' listener; `nil`: they share the listener of clients.
  public var operatorAddress: ListenAddress?
  /// The name in `CDN-Loop` (RFC 8586) and `Via`; empty: random at each start.
  public var id = ""
  /// Event loops; 0: one per usable core (`Cores.usable`).
  public var workers = 0
  /// Maximum connections. Each needs a descriptor: connections, transfers and disk together must
  /// stay below the open-file limit.
  public var connectionLimit = 4_096
  /// Maximum connections of one client, an IPv4 address or the /64 of an IPv6 one; 0: a quarter.
  public var connectionsPerClient = 0
  /// Maximum requests that wait for a response.
  public var maximumActiveRequests = 2_048
  /// Those of one client, behind trusted proxies as these name them; 0: a quarter.
  public var maximumActiveRequestsPerClient = 0
  /// Imaging time of one client in a minute; 0: no limit.
  public var imagingTimePerClient = Duration.zero
  /// Requests of one client in a second, averaged over ten; 0: no limit.
  public var requestsPerSecond = 0
  /// Time-out of an idle keep-alive connection, in whole seconds.
  public var idleTimeout = Duration.seconds(60)
  /// Time-out for a request's head: from the opening of the connection, later from its first byte.
  public var headerTimeout = Duration.seconds(10)
  /// Time limit for producing a response.
  public var requestTimeout = Duration.seconds(30)
  /// Time to read a response of any length, if the client keeps `minimumRate`.
  public var answerTimeout = Duration.seconds(120)
  /// Minimum rate of a client in bytes per second, on average; 0: none. A response has the longer
  /// one of `answerTimeout`, and 30 s with its length divided by this rate.
  public var minimumRate = 64 << 10
  /// How long requests are served after SIGTERM, while `/readyz` is 503.
  public var shutdownDelay = Duration.seconds(5)
  /// Grace period for running requests when the server stops.
  public var graceTime = Duration.seconds(20)
  /// The origins whose pages may read responses (RFC 6454). `nil`: `*`, or none beside
  /// `download.allow_networks`: there, any page on the web could read the images of a private
  /// network through its visitors' browsers.
  public var corsOrigins: [String]?
  /// Networks (CIDR) of trusted proxies; `unix:` for peers of unix sockets.
  public var trustedProxies: [String] = []
  /// The field in which they name their client.
  public var forwardedHeader = ForwardedHeader.auto
  /// Whether their connections begin with a PROXY header. The operators' listener expects none.
  public var proxyProtocol = false
  /// How long the figures of `/stats` and `/metrics` are reused.
  public var statsLifetime = Duration.milliseconds(250)
  /// The loading options of unsigned requests; `nil`: all with `signing.mode` off, else none.
  public var allow: Set<ClientOption>?
  /// Whether clients may enlarge an image beyond its source's size.
  public var allowsEnlarging = true
  /// Sizes in points to which `w` and `h` of unsigned requests round up, ascending; empty: none.
  public var sizeSteps: [Int] = []
  /// Parameters that are ignored, by name.
  public var ignoredParameters: [String] = []
  /// Whether clients may request images by preset only.
  public var presetsOnly = false
  /// Whether a request without a format is redirected to a URL that names one.
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
