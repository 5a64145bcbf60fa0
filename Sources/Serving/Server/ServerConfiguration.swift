// ServerConfiguration and ServerError: what a server is told before it starts, and why it may not.

import Glibc
import Model
import Platform

/// How a server listens, and the bounds it keeps. Every wait and every queue has one.
public struct ServerConfiguration: Sendable {
  /// A numeric IPv4 or IPv6 address; `0.0.0.0` or `::` for all of them.
  public var address = "127.0.0.1"
  /// The port, 0–65535; 0 takes any free one, see `Server.port`.
  public var port = 8_080
  /// What this server is called in `CDN-Loop` and `Via`: requests that name it are refused. Empty: none are.
  public var id = ""
  /// Threads that read requests and write answers, at least 1: one per core by default.
  public var workers = max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)
  /// Most connections at once; further clients wait in the kernel's queue. One descriptor each, so this, the
  /// transfers and the disk together must stay below the limit of open files.
  public var connectionLimit = 4_096
  /// Most requests that may wait for an answer at once; more are refused with 503 `overloaded`.
  public var maximumActiveRequests = 2_048
  /// How long a kept connection may be silent, in whole seconds, at least 1.
  public var idleTimeout = Duration.seconds(60)
  /// How long the header of a request may take. libmicrohttpd does not tell when the first byte of a *later* request
  /// on a connection arrives, so for those the time counts from the end of `idleTimeout`.
  public var headerTimeout = Duration.seconds(10)
  /// How long an answer may take to come about; then it is 504 `deadline_exceeded`.
  public var requestTimeout = Duration.seconds(30)
  /// How long a client may take to read its answer, beside what `minimumReadRate` gives it for the length.
  public var answerTimeout = Duration.seconds(120)
  /// The slowest a client may read on the whole, in bytes a second, at least 1.
  public var minimumReadRate = 16 << 10
  /// How long running requests may take to finish when the server stops.
  public var graceTime = Duration.seconds(20)
  /// The origins whose pages may read answers; `*` for all, empty for none.
  public var corsOrigins = ["*"]
  /// Whether clients may have origins asked though something fresh is kept: `refresh`, `cache=bypass`, `retry`, and
  /// `no-cache`, `max-age` and `min-fresh` in `Cache-Control`.
  public var allowsReload = true
  /// Whether clients may ask for more pixels than a source has.
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
  /// Most bytes of an image that an operator puts into the cache.
  public var maximumUpload = 64 << 20
  /// Queries of `/image` without `url`, by name.
  public var presets: [String: String] = [:]
  /// Whether clients may ask for images by presets alone.
  public var presetsOnly = false
  /// Formats of `ImageFormat.negotiable` for clients who name them, where the request leaves the format open; the best
  /// first. Empty: `Accept` is not looked at.
  public var autoFormats: [ImageFormat] = [.avif, .webp]
  /// Whether a request that leaves the format open is sent on to one that names it.
  public var redirectsAuto = false
  /// Images that may be laid on others, by name.
  public var watermarks: [String: SourceURL] = [:]
  /// Whether files below the local root may be, by their `local:///` URLs.
  public var allowsLocalWatermarks = false
  /// What keys are made of, and which fields of clients' headers go on to origins.
  public var keyFilter = CacheKeyFilter()
  /// Bytes for the parsed request targets each worker remembers.
  public var memoBytesPerWorker = 2 << 20
  /// How heads are given to libmicrohttpd; tests choose.
  var headStyle = HeadStyle(libraryVersion: HeadStyle.libraryVersion)
  /// How files on disk are read; tests choose.
  var fileAccess = FileAccess()

  /// The defaults.
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

/// Why a server does not start; its description is one line for the operator.
public enum ServerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The address is not numeric, or the port no port.
  case invalidAddress(String)
  /// The address cannot be listened on: in use, not ours, not permitted.
  case cannotListen(endpoint: String, reason: String)
  /// Threads, descriptors or memory were missing.
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
