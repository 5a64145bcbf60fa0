// ServerConfiguration: the settings and limits of a server, and its start errors.

import Glibc
import Model
import Platform

/// The address and the limits of a server. Every wait and every queue has a limit.
public struct ServerConfiguration: Sendable {
  /// A numeric IPv4 or IPv6 address; `0.0.0.0` or `::` for all interfaces.
  public var address = "127.0.0.1"
  /// The port, 0–65535; 0 selects a free port, see `Server.port`.
  public var port = 8_080
  /// What this server is called in `CDN-Loop` and `Via`: requests that name it are refused. Empty: none are.
  public var id = ""
  /// Threads that read requests and write answers, at least 1: one per core by default.
  public var workers = max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)
  /// Maximum number of connections; further clients wait in the kernel's backlog. Each needs a
  /// descriptor: connections, transfers and disk together must stay below the open-file limit.
  public var connectionLimit = 4_096
  /// Maximum number of requests waiting for a response; further ones get 503 `overloaded`.
  public var maximumActiveRequests = 2_048
  /// Time-out of an idle keep-alive connection, in whole seconds, at least 1.
  public var idleTimeout = Duration.seconds(60)
  /// Time-out for a request's header. On a reused connection it starts when `idleTimeout` ends,
  /// because libmicrohttpd does not report a later request's first byte.
  public var headerTimeout = Duration.seconds(10)
  /// Time limit for producing a response; then the response is 504 `deadline_exceeded`.
  public var requestTimeout = Duration.seconds(30)
  /// Time a client may take to read a response, in addition to its length divided by
  /// `minimumReadRate`.
  public var answerTimeout = Duration.seconds(120)
  /// Minimum average rate at which a client must read, in bytes per second, at least 1.
  public var minimumReadRate = 16 << 10
  /// Grace period for running requests when the server stops.
  public var graceTime = Duration.seconds(20)
  /// The origins whose pages may read responses; `*` for all, empty for none.
  public var corsOrigins = ["*"]
  /// Whether clients may force revalidation of fresh images. Covers `refresh`, `cache=bypass`,
  /// `retry`, and `no-cache`, `max-age` and `min-fresh` in `Cache-Control`.
  public var allowsReload = true
  /// Whether clients may enlarge an image beyond its source's size.
  public var allowsEnlarging = true
  /// Quality of lossy results where the request does not say.
  public var qualities = FormatQualities()
  /// Whether errors name the key of the configuration that decides.
  public var explainsErrors = false
  /// Most pixels of a result: clients can ask for no higher limit.
  public var maximumResultPixels = 25_000_000
  /// Proxies whose word on their clients' addresses is believed.
  public var trustedProxies = TrustedProxies()
  /// Which answers have a line in the log at level info.
  public var loggedRequests = LoggedRequests.misses
  /// Tokens of operators; without any there is no `/admin`.
  public var operatorTokens: [String] = []
  /// Maximum size of an image that an operator puts into the cache, in bytes.
  public var maximumUpload = 64 << 20
  /// Named queries of `/image`, without `url`.
  public var presets: [String: String] = [:]
  /// Whether clients may request images by preset only.
  public var presetsOnly = false
  /// Formats of `ImageFormat.negotiable` for requests without a format, in order of preference, if
  /// `Accept` names them. If empty, `Accept` is ignored.
  public var autoFormats: [ImageFormat] = [.avif, .webp]
  /// Whether a request without a format is redirected to a URL that names the negotiated format.
  public var redirectsAuto = false
  /// Images that clients may use as watermarks, by name.
  public var watermarks: [String: SourceURL] = [:]
  /// Whether clients may use files below the local root as watermarks, by `local:///` URLs.
  public var allowsLocalWatermarks = false
  /// The parts of a request that form cache keys, and the request fields forwarded to origins.
  public var keyFilter = CacheKeyFilter()
  /// Size of each event loop's cache of parsed request targets, in bytes.
  public var memoBytesPerWorker = 2 << 20
  /// How response heads are passed to libmicrohttpd; set by tests.
  var headStyle = HeadStyle(libraryVersion: HeadStyle.libraryVersion)
  /// How files on disk are read; tests choose.
  var fileAccess = FileAccess()

  /// Creates the default configuration.
  public init() {}

  /// The presets that no image can be asked for with, by name, and why.
  public var invalidPresets: [(name: String, error: ImageError)] {
    let rules = RequestRules(withoutPresets: self)
    return presets.sorted { $0.key < $1.key }.compactMap { name, query in
      do throws(ImageError) {
        _ = try rules.preset(query)
        return nil
      } catch {
        return (name, error)
      }
    }
  }
}

/// The reason why a server does not start. The description is one line for the operator.
public enum ServerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The address is not numeric, or the port is out of range.
  case invalidAddress(String)
  /// Listening failed: address in use, not local, or not permitted.
  case cannotListen(endpoint: String, reason: String)
  /// Threads, descriptors or memory are exhausted.
  case cannotStart(reason: String)

  /// One line: `cannot listen on 127.0.0.1:8080: Address already in use (98)`.
  public var description: String {
    switch self {
    case .invalidAddress(let address): "cannot listen on \(address): it is no numeric address"
    case .cannotListen(let endpoint, let reason): "cannot listen on \(endpoint): \(reason)"
    case .cannotStart(let reason): "cannot start serving: \(reason)"
    }
  }
}
