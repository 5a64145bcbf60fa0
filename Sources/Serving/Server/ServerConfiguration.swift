// ServerConfiguration: the settings and limits of a server, and its start errors.

import Glibc
import Model
import Platform

/// The settings of a server, with what other sections and the program add.
@dynamicMemberLookup
public struct ServerConfiguration: Sendable {
  /// The keys `server.…`.
  public var settings: ServerSettings
  /// Threads that read requests and write responses, at least 1: `settings.workers`, or one per core.
  public var workers: Int
  /// The proxies that are trusted to name their clients' addresses.
  public var trustedProxies = TrustedProxies()
  /// Minimum average rate at which a client must read, in bytes per second, at least 1.
  public var minimumReadRate = 16 << 10
  /// Which responses have a line in the log at level info (`log.requests`).
  public var loggedRequests: LoggedRequests
  /// Tokens of operators (`admin.tokens`); without tokens there is no `/admin`.
  public var operatorTokens: [String]
  /// Maximum size in bytes of an image that an operator puts into the cache
  /// (`download.maximum_bytes`).
  public var maximumUpload: Int
  /// Formats of `ImageFormat.negotiable` for requests without a format (`imaging.auto_formats`).
  public var autoFormats: [ImageFormat]
  /// Maximum pixels of a result (`imaging.maximum_result_pixels`).
  public var maximumResultPixels: Int
  /// Quality of lossy results where the request does not say (`imaging.…_quality`).
  public var qualities: FormatQualities
  /// Named queries of `/image`, without `url`.
  public var presets: [String: String] = [:]
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

  /// Creates the configuration of a server from the sections that it reads; by default all have
  /// their defaults.
  public init(
    _ settings: ServerSettings = ServerSettings(), admin: AdminSettings = AdminSettings(),
    download: DownloadSettings = DownloadSettings(), imaging: ImagingSettings = ImagingSettings(),
    log: LogSettings = LogSettings()
  ) {
    self.settings = settings
    let cores = max(sysconf(CInt(_SC_NPROCESSORS_ONLN)), 1)
    workers = settings.workers > 0 ? settings.workers : cores
    trustedProxies.field = settings.forwardedHeader
    loggedRequests = log.requests
    operatorTokens = admin.tokens
    maximumUpload = download.maximumBytes
    autoFormats = imaging.autoFormats
    maximumResultPixels = imaging.maximumResultPixels
    qualities = imaging.qualities
  }

  /// A setting of `settings`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<ServerSettings, Value>) -> Value {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }

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
