// Configuration: all settings of the server with their defaults.

import Model

/// The settings of a server. The defaults are safe and useful. `ConfigurationKeys` maps keys to
/// settings.
public struct Configuration: Hashable, Sendable {
  /// `server.…`: listening, connection limits and time-outs.
  public struct Server: Hashable, Sendable {
    /// Numeric address to listen on.
    public var address = "127.0.0.1"
    /// Port to listen on; 0 selects a free port.
    public var port = 8080
    /// The server's name in `CDN-Loop` and `Via`; empty: a random one at each start.
    public var id = ""
    /// Threads that serve; 0 is one per core.
    public var workers = 0
    /// Maximum number of open connections.
    public var connections = 4_096
    /// Maximum number of requests waiting for a response.
    public var activeRequests = 2_048
    /// Time-out of an idle keep-alive connection.
    public var idleTimeout = Duration.seconds(60)
    /// Time-out for a request's header.
    public var headerTimeout = Duration.seconds(10)
    /// Time limit for producing a response.
    public var requestTimeout = Duration.seconds(30)
    /// Time limit for a client to read its response.
    public var answerTimeout = Duration.seconds(120)
    /// How long the server keeps serving after SIGTERM.
    public var shutdownDelay = Duration.seconds(5)
    /// Grace period for running requests during a stop.
    public var graceTime = Duration.seconds(20)
    /// Origins whose pages may read responses; `*` for all, empty for none.
    public var corsOrigin = ["*"]
    /// Networks of the proxies that name their clients' addresses.
    public var trustedProxies: [String] = []
    /// The field in which they do: `auto`, `x-forwarded-for` or `forwarded`.
    public var forwardedHeader = "auto"
    /// Whether clients may make Pictor ask the origin although a fresh image is stored.
    public var allowReload = true
    /// Whether clients may enlarge an image beyond its source's size.
    public var allowEnlarge = true
    /// Whether clients may request images by preset only.
    public var presetsOnly = false
    /// Whether a request without a format is redirected to a URL that names the negotiated format.
    public var redirectAuto = false
    /// Whether errors name the key that decides.
    public var explainErrors = false
  }

  /// `admin.…`: the admin endpoints.
  public struct Admin: Hashable, Sendable {
    /// Tokens of operators; without tokens the endpoints are disabled.
    public var tokens: [String] = []
  }

  /// `memory.…`: the memory tier.
  public struct Memory: Hashable, Sendable {
    /// Maximum bytes; `nil` depends on the available memory (`MemoryPlan`).
    public var limit: Int?
    /// Maximum number of images; 0 is no limit.
    public var countLimit = 0
    /// Share of the control group's memory limit at which images are evicted; 0 is never.
    public var pressure = 0.9
  }

  /// `disk.…`: the disk tier.
  public struct Disk: Hashable, Sendable {
    /// The folder of the tier.
    public var path = ".cache/pictor"
    /// Maximum bytes; 0 disables the tier.
    public var limit = 10 << 30
    /// Maximum number of entries, one file each; 0 is no limit.
    public var countLimit = 1_000_000
    /// Share of both limits for sources; variants get the rest.
    public var sourceShare = 0.5
    /// Age after which a file expires; `nil` is never.
    public var maximumAge: Duration? = .seconds(7 * 86_400)
    /// The time that the age counts from: `access`, `modification` or `creation`.
    public var expireBy = "access"
    /// Interval of the search for expired files.
    public var cleanInterval = Duration.seconds(600)
    /// The fraction of a share that remains after a cleaning at its limit.
    public var cleanFraction = 0.5
    /// Maximum size in bytes of entries that a read promotes to memory.
    public var promotionThreshold = 1 << 20
    /// Maximum bytes waiting to be written; `nil` depends on the available memory.
    public var writeQueueLimit: Int?
  }

  /// `freshness.…`: the freshness lifetimes of images.
  public struct Freshness: Hashable, Sendable {
    /// Freshness lifetime if the origin sets none.
    public var defaultLifetime = Duration.seconds(7 * 86_400)
    /// Maximum heuristic lifetime derived from `Last-Modified`; 0 disables heuristics.
    public var heuristicLifetime = Duration.seconds(7 * 86_400)
    /// Lifetime in clients' caches if the origin sets none.
    public var clientDefault = Duration.seconds(3_600)
    /// Minimum freshness lifetime, overriding the origin.
    public var minimumLifetime = Duration.zero
    /// Maximum freshness lifetime, overriding the origin.
    public var maximumLifetime = Duration.seconds(365 * 86_400)
    /// How long a stale image may be served during revalidation, if the origin does not say.
    public var staleWhileRevalidate = Duration.seconds(10)
    /// How long a stale image may be served on errors, if the origin does not say.
    public var staleIfError = Duration.seconds(86_400)
    /// Time after an origin failure during which the origin is not asked for that image.
    public var errorInterval = Duration.seconds(10)

    /// The allowed range of lifetimes and stale times.
    static let allowed = Duration.zero...(.seconds(10 * 365 * 86_400))
  }

  /// `failures.…`: the negative cache of failed URLs.
  public struct Failures: Hashable, Sendable {
    /// How long failures are remembered, as `STATUS=TIME`.
    public var ttl = ["404=10m", "410=1d", "413=1h", "415=1h", "422=1h"]
    /// Maximum number of failed URLs; 0 disables the list.
    public var limit = 10_000
  }

  /// `download.…`: transfers from origins.
  public struct Download: Hashable, Sendable {
    /// Time-out of a whole transfer.
    public var timeout = Duration.seconds(15)
    /// Time-out of connecting, including name resolution and TLS.
    public var connectTimeout = Duration.seconds(5)
    /// How long an origin may send almost nothing, before the first byte or after it.
    public var lowSpeedTime = Duration.seconds(15)
    /// Time-out from sending a request to the first byte of its response; zero is no separate
    /// limit.
    public var firstByteTimeout = Duration.seconds(10)
    /// Maximum number of retries after failures before the first byte.
    public var retries = 1
    /// Delay before the first retry, with ± 50 % jitter.
    public var retryDelay = Duration.milliseconds(200)
    /// Consecutive failures that open a host's circuit breaker; 0 is never.
    public var breakerThreshold = 5
    /// How long the circuit breaker stays open the first time.
    public var breakerOpenTime = Duration.seconds(30)
    /// The order of waiting downloads of equal priority: `fifo` or `lifo`.
    public var order = "fifo"
    /// Maximum number of concurrent transfers.
    public var limit = 64
    /// Maximum number of concurrent transfers per host and port.
    public var limitPerHost = 6
    /// Maximum number of waiting downloads.
    public var queueLimit = 1_024
    /// Maximum time a download waits for a slot.
    public var queueTimeout = Duration.seconds(15)
    /// Maximum size of a source in bytes.
    public var maximumBytes = 64 << 20
    /// Maximum total bytes of the bodies being received; `nil` depends on the available memory.
    public var maximumBytesInFlight: Int?
    /// Maximum number of redirects followed.
    public var maximumRedirects = 5
    /// Networks (CIDR) that are allowed although they are not public.
    public var allowNetworks: [String] = []
    /// Allowed hosts; empty is all.
    public var allowHosts: [String] = []
    /// Denied hosts.
    public var denyHosts: [String] = []
    /// URL of the HTTP proxy, or a reference to it; `nil` disables the proxy.
    public var proxy: SecretText?
    /// File of trusted certificate authorities; empty is the system's.
    public var caFile = ""
  }

  /// `sources.…`: sources other than origins.
  public struct Sources: Hashable, Sendable {
    /// Folder of `local:///` URLs; empty disables local sources.
    public var localRoot = ""
    /// Freshness lifetime of local files.
    public var localLifetime = Duration.seconds(60)
  }

  /// `imaging.…`: the imaging workers.
  public struct Imaging: Hashable, Sendable {
    /// Number of worker processes; 0 is one per core, as far as memory allows.
    public var workers = 0
    /// Time limit of an imaging job. Shorter than the time limit for a response, so that the
    /// response can tell the reason.
    public var deadline = Duration.seconds(20)
    /// Processor time limit of an imaging job.
    public var processorTime = Duration.seconds(10)
    /// Maximum number of waiting jobs.
    public var queueLimit = 1_024
    /// Number of jobs after which a worker is replaced.
    public var jobsPerWorker = 10_000
    /// Maximum memory of a worker in bytes; `nil` depends on the available memory.
    public var workerMemory: Int?
    /// Resident bytes above which a worker is replaced after its job; `nil` depends on the
    /// available memory.
    public var retireAbove: Int?
    /// Niceness of the workers relative to the server.
    public var niceness = 5
    /// Formats that are decoded.
    public var formats = ImageFormat.inputs
    /// Formats for clients whose `Accept` names them, in order of preference.
    public var autoFormats: [ImageFormat] = [.avif, .webp]
    /// Maximum pixels of a source, all frames together.
    public var maximumPixels = 150_000_000
    /// Maximum pixels of a result.
    public var maximumResultPixels = 25_000_000
    /// Maximum frames of a source.
    public var maximumFrames = 1_000
    /// The minimum severity of damage for which a source is refused.
    public var failOn = FailOn.warning.rawValue
    /// Quality of lossy results for requests that name none.
    public var qualities = FormatQualities()
    /// Effort of encoders.
    public var efforts = EncoderEfforts()
    /// Whether a negotiated AVIF that is not stored is encoded in the background, after a faster response.
    public var avifLater = true
    /// Whether a small image may be derived from a larger one if the source is not cached.
    public var derive = true
  }

  /// `prefetch.…`: prefetching of operators' lists.
  public struct Prefetch: Hashable, Sendable {
    /// Maximum number of concurrent requests.
    public var limit = 3
    /// Maximum number of concurrent requests per host.
    public var limitPerHost = 1
    /// Maximum number of concurrent lists.
    public var lists = 8
  }

  /// `log.…`: the log.
  public struct Log: Hashable, Sendable {
    /// `json` or `text`.
    public var format = "text"
    /// `debug`, `info`, `warning` or `error`.
    public var level = "info"
    /// The requests that are logged at info: `all`, `misses` or `errors`.
    public var requests = "misses"
  }

  /// `server.…`
  public var server = Server()
  /// `presets`: named queries of `/image`, without `url`.
  public var presets: [String: String] = [:]
  /// `watermarks`: URLs of watermark images, by name.
  public var watermarks: [String: String] = [:]
  /// `hosts`: settings for particular hosts.
  public var hosts: [HostRule] = []
  /// `admin.…`
  public var admin = Admin()
  /// `memory.…`
  public var memory = Memory()
  /// `disk.…`
  public var disk = Disk()
  /// `freshness.…`
  public var freshness = Freshness()
  /// `failures.…`
  public var failures = Failures()
  /// `download.…`
  public var download = Download()
  /// `sources.…`
  public var sources = Sources()
  /// `imaging.…`
  public var imaging = Imaging()
  /// `prefetch.…`
  public var prefetch = Prefetch()
  /// `log.…`
  public var log = Log()

  /// Creates the default configuration.
  public init() {}
}
