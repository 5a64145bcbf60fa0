// Configuration: every setting of the server with its default. The keys that lead to them are in ConfigurationKeys.

import Model

/// The settings of a server. The defaults alone make one that is safe and useful.
public struct Configuration: Hashable, Sendable {
  /// `server.…`: who may connect, how many, for how long.
  public struct Server: Hashable, Sendable {
    /// Address to listen on, numeric.
    public var address = "127.0.0.1"
    /// Port to listen on; 0 takes any that is free.
    public var port = 8080
    /// The server's name in `CDN-Loop` and `Via`; empty: one by chance at each start.
    public var id = ""
    /// Threads that serve; 0 is one per core.
    public var workers = 0
    /// Most open connections.
    public var connections = 4_096
    /// Most requests that may wait for an image at once.
    public var activeRequests = 2_048
    /// How long a kept connection may be silent.
    public var idleTimeout = Duration.seconds(60)
    /// How long a client may take to send a request's header.
    public var headerTimeout = Duration.seconds(10)
    /// How long an answer may take.
    public var requestTimeout = Duration.seconds(30)
    /// How long a client may take to read its answer.
    public var answerTimeout = Duration.seconds(120)
    /// How long the server goes on listening after SIGTERM.
    public var shutdownDelay = Duration.seconds(5)
    /// How long running requests may go on after a stop was asked for.
    public var graceTime = Duration.seconds(20)
    /// Origins whose pages may read answers; `*` for all, empty for none.
    public var corsOrigin = ["*"]
    /// Networks of the proxies that name their clients' addresses.
    public var trustedProxies: [String] = []
    /// The field in which they do: `auto`, `x-forwarded-for` or `forwarded`.
    public var forwardedHeader = "auto"
    /// Whether clients may have origins asked though something fresh is kept.
    public var allowReload = true
    /// Whether clients may ask for more pixels than a source has.
    public var allowEnlarge = true
    /// Whether clients may ask for images by presets alone.
    public var presetsOnly = false
    /// Whether a request that leaves the format open is sent on to one that names it.
    public var redirectAuto = false
    /// Whether errors name the key that decides.
    public var explainErrors = false
  }

  /// `admin.…`: the operators' paths.
  public struct Admin: Hashable, Sendable {
    /// Tokens that open them; without any there are none.
    public var tokens: [String] = []
  }

  /// `memory.…`: the memory tier.
  public struct Memory: Hashable, Sendable {
    /// Most bytes kept. `nil`: by the memory that there is (`MemoryPlan`).
    public var limit: Int?
    /// Most images kept; 0 is as many as fit.
    public var countLimit = 0
    /// Share of the memory that the control group may use from which on fewer are kept; 0 is never.
    public var pressure = 0.9
  }

  /// `disk.…`: the disk tier.
  public struct Disk: Hashable, Sendable {
    /// Its folder.
    public var path = ".cache/pictor"
    /// Most bytes kept; 0 turns the tier off.
    public var limit = 10 << 30
    /// Most entries kept, each a file; 0 is no limit.
    public var countLimit = 1_000_000
    /// What share of both limits sources have; variants have the rest.
    public var sourceShare = 0.5
    /// Age after which a file is removed; `nil` is never.
    public var maximumAge: Duration? = .seconds(7 * 86_400)
    /// What that age counts from: `access`, `modification` or `creation`.
    public var expireBy = "access"
    /// How often old files are looked for.
    public var cleanInterval = Duration.seconds(600)
    /// Part of a share that a cleaning at its limit leaves.
    public var cleanFraction = 0.5
    /// Bodies up to so many bytes are brought to memory when read.
    public var promotionThreshold = 1 << 20
    /// Most bytes that may wait to be written. `nil`: by the memory that there is.
    public var writeQueueLimit: Int?
  }

  /// `freshness.…`: how long images are served without asking their origin.
  public struct Freshness: Hashable, Sendable {
    /// Where the origin says nothing.
    public var defaultLifetime = Duration.seconds(7 * 86_400)
    /// At most this of what `Last-Modified` suggests, where the origin says nothing else; 0: it suggests nothing.
    public var heuristicLifetime = Duration.seconds(7 * 86_400)
    /// For how long clients' own caches keep an answer whose origin says nothing.
    public var clientDefault = Duration.seconds(3_600)
    /// At the least, whatever the origin says.
    public var minimumLifetime = Duration.zero
    /// At the most, whatever the origin says.
    public var maximumLifetime = Duration.seconds(365 * 86_400)
    /// After it, while the origin is asked, where the origin does not say.
    public var staleWhileRevalidate = Duration.seconds(10)
    /// After it, where the origin cannot be had, and does not say.
    public var staleIfError = Duration.seconds(86_400)
    /// For how long an origin that failed is not asked for that image again.
    public var errorInterval = Duration.seconds(10)

    /// What lifetimes and times to be stale may be.
    static let allowed = Duration.zero...(.seconds(10 * 365 * 86_400))
  }

  /// `failures.…`: the list of failed URLs.
  public struct Failures: Hashable, Sendable {
    /// For how long each is remembered, `STATUS=TIME`.
    public var ttl = ["404=10m", "410=1d", "413=1h", "415=1h", "422=1h"]
    /// Most URLs remembered; 0 is none.
    public var limit = 10_000
  }

  /// `download.…`: transfers from origins.
  public struct Download: Hashable, Sendable {
    /// How long a whole transfer may take.
    public var timeout = Duration.seconds(15)
    /// How long connecting may take, name and TLS included.
    public var connectTimeout = Duration.seconds(5)
    /// How long an origin may be as good as silent, before its first byte and after.
    public var lowSpeedTime = Duration.seconds(15)
    /// How long an origin may take from a request to the first byte of its answer; zero is as long as all else allows.
    public var firstByteTimeout = Duration.seconds(10)
    /// How often what failed before a byte came is tried again.
    public var retries = 1
    /// Before the first retry, give or take half.
    public var retryDelay = Duration.milliseconds(200)
    /// Failures in a row after which a host is left alone; 0 is never.
    public var breakerThreshold = 5
    /// For how long it is.
    public var breakerOpenTime = Duration.seconds(30)
    /// Which of those that wait goes first.
    public var order = "fifo"
    /// Most transfers at once.
    public var limit = 64
    /// Most transfers at once from one host and port.
    public var limitPerHost = 6
    /// Most downloads that may wait for a place.
    public var queueLimit = 1_024
    /// Most bytes of one source.
    public var maximumBytes = 64 << 20
    /// Most bytes of all bodies being received. `nil`: by the memory that there is.
    public var maximumBytesInFlight: Int?
    /// Most redirects followed.
    public var maximumRedirects = 5
    /// Networks (CIDR) let through the address check.
    public var allowNetworks: [String] = []
    /// Hosts that may be asked; empty is all.
    public var allowHosts: [String] = []
    /// Hosts that may not be asked.
    public var denyHosts: [String] = []
    /// URL of the HTTP proxy that hosts are asked by, or where it stands; `nil` is none.
    public var proxy: SecretText?
    /// File with certificate authorities to trust; empty is the system's.
    public var caFile = ""
  }

  /// `sources.…`: sources other than origins.
  public struct Sources: Hashable, Sendable {
    /// Folder that `local:///` names; empty turns local sources off.
    public var localRoot = ""
    /// How long what was made of a local file is served without looking at the file.
    public var localLifetime = Duration.seconds(60)
  }

  /// `imaging.…`: the worker processes.
  public struct Imaging: Hashable, Sendable {
    /// Worker processes; 0 is one per core, or as many as there is memory for.
    public var workers = 0
    /// How long one image may take; below the time for an answer, so that it is known why there was none.
    public var deadline = Duration.seconds(20)
    /// How much processor time one image may take.
    public var processorTime = Duration.seconds(10)
    /// Most jobs that may wait for a worker.
    public var queueLimit = 1_024
    /// Jobs after which a worker is replaced.
    public var jobsPerWorker = 10_000
    /// Most memory a worker may allocate, in bytes. `nil`: by the memory that there is.
    public var workerMemory: Int?
    /// Resident bytes above which a worker is replaced after its job. `nil`: by the memory that there is.
    public var retireAbove: Int?
    /// Niceness of the workers beside the server.
    public var niceness = 5
    /// Formats that are decoded.
    public var formats = ImageFormat.inputs
    /// Formats for clients who name them in `Accept`, the best first.
    public var autoFormats: [ImageFormat] = [.avif, .webp]
    /// Most pixels of a source, all frames together.
    public var maximumPixels = 150_000_000
    /// Most pixels of a result.
    public var maximumResultPixels = 25_000_000
    /// Most frames of a source.
    public var maximumFrames = 1_000
    /// The mildest damage for which a source is refused.
    public var failOn = FailOn.warning.rawValue
    /// Quality of lossy results where the request does not say.
    public var qualities = FormatQualities()
    /// Effort of encoders.
    public var efforts = EncoderEfforts()
    /// Whether a negotiated AVIF that is not there yet is made behind a quicker answer.
    public var avifLater = true
    /// Whether a small image may be made of a larger one where the source is not kept.
    public var derive = true
  }

  /// `prefetch.…`: lists that operators have loaded ahead.
  public struct Prefetch: Hashable, Sendable {
    /// Most images asked for at once.
    public var limit = 3
    /// Most of them from one host.
    public var limitPerHost = 1
    /// Most lists worked on at once.
    public var lists = 8
  }

  /// `log.…`: what operators read.
  public struct Log: Hashable, Sendable {
    /// `json` or `text`.
    public var format = "text"
    /// `debug`, `info`, `warning` or `error`.
    public var level = "info"
    /// Which answers have a line at info: `all`, `misses` or `errors`.
    public var requests = "misses"
  }

  /// `server.…`
  public var server = Server()
  /// `presets`: queries of `/image` without `url`, by name.
  public var presets: [String: String] = [:]
  /// `watermarks`: URLs of images that may be laid on others, by name.
  public var watermarks: [String: String] = [:]
  /// `hosts`: what is different for some hosts.
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

  /// The defaults.
  public init() {}
}
