// ServerConfiguration: the settings and limits of a server, and its start errors.

import Core
import Glibc

/// The settings of a server, with what other sections and the program add.
@dynamicMemberLookup
public struct ServerConfiguration: Sendable {
  /// The keys `server.…`.
  public var settings: ServerSettings
  /// Threads that read requests and write responses: `settings.workers`, or one per usable core.
  public var workers: Int
  /// The origins whose pages may read responses; `*` for all.
  public var corsOrigins: [String]
  /// Listening sockets that replace addresses.
  public var inherited = InheritedSockets()
  /// The proxies that are trusted to name their clients' addresses.
  public var trustedProxies = TrustedProxies()
  /// The keys `download.…`, `imaging.…` and `log.…`.
  public var download: DownloadSettings, imaging: ImagingSettings, log: LogSettings
  /// The operators (`admin.tokens`); without any there is no `/admin`.
  public var operators: [Operator] = []
  /// Which requests need a signature, and the keys (`signing.…`).
  public var signing = SigningPolicy()
  /// Named queries of `/image`, without `url`.
  public var presets: [String: String] = [:]
  /// Images that clients may use as watermarks, by name.
  public var watermarks: [String: SourceURL] = [:]
  /// Images that are sent in place of those that cannot be had, by name.
  public var fallbacks: [String: SourceURL] = [:]
  /// The keys `sources.…`.
  public var sources = SourceSettings()
  /// Applies `sources.base_url`, `replace` and `allow` to the text of `url`; `nil`: nothing does.
  public var sourceRules:
    (@Sendable (_ url: String, _ isOfDoor: Bool) throws(ImageError) -> String)?
  /// Other image servers whose addresses are served (`doors`).
  public var doors: [DoorPlace] = []
  /// Whether clients may use files below the local root as watermarks, by `local:///` URLs.
  public var allowsLocalWatermarks = false
  /// The parts of a request that form cache keys, and the request fields forwarded to origins.
  public var keyFilter = CacheKeyFilter()
  /// Whether origins may be told the trace of a request (`tracing.propagate`).
  public var propagatesTraces = false
  /// Receives the spans of recorded requests (`tracing.endpoint`); `nil`: none is recorded.
  public var spans: (any SpanSink)?
  /// The share of requests that are recorded, 0–1, where no trusted proxy has decided.
  public var sampledShare = TracingSettings().sample
  /// Maximum number of targets whose cache keys are kept after a hit, for all event loops; 250 to
  /// 900 bytes each (`MemoryPlan.knownTargets`).
  public var knownTargets = MemoryPlan.mostKnownTargets
  /// How response heads are passed to libmicrohttpd; set by tests.
  var headStyle = HeadStyle(libraryVersion: HeadStyle.libraryVersion)
  /// How files on disk are read; tests choose.
  var fileAccess = FileAccess()
  /// Time over which `minimumRate` is averaged; tests choose.
  var rateWindow = Duration.seconds(30)
  /// Time for a connection's first byte when the server stops on inherited sockets. Requests come
  /// within a round trip; a connection without one was opened by a browser ahead of need.
  var firstRequestTime = Duration.seconds(2)
  /// Whether clients of the machine itself have shares, too; set by tests.
  var countsLoopback = false

  /// Creates the configuration of a server from the sections that it reads; by default all have
  /// their defaults.
  public init(
    _ settings: ServerSettings = ServerSettings(),
    download: DownloadSettings = DownloadSettings(), imaging: ImagingSettings = ImagingSettings(),
    log: LogSettings = LogSettings()
  ) {
    self.settings = settings
    self.download = download
    self.imaging = imaging
    self.log = log
    workers = settings.workers > 0 ? settings.workers : Cores.usable
    corsOrigins = settings.corsOrigins ?? (download.allowNetworks.isEmpty ? ["*"] : [])
    trustedProxies.field = settings.forwardedHeader
  }

  /// Where the server listens for clients.
  public var clientAddresses: [ListenAddress] {
    let inherited = inherited.clients.compactMap(InheritedSockets.address)
    return inherited.isEmpty ? settings.clientAddresses : inherited
  }

  /// Where the server listens for operators; empty if they share the addresses of clients.
  public var operatorAddresses: [ListenAddress] {
    let inherited = inherited.operators.compactMap(InheritedSockets.address)
    return inherited.isEmpty ? [settings.operatorAddress].compactMap { $0 } : inherited
  }

  /// Connections of the operators' listener.
  private static let operatorConnections = 64

  /// How long a client may take to read or send a body.
  var transferTime: TransferTime {
    TransferTime(
      least: settings.answerTimeout.wholeMilliseconds, window: rateWindow.wholeMilliseconds,
      rate: settings.minimumRate)
  }

  /// How fast clients have to read; `nil` without a minimum rate.
  var leastPace: ReadingPace.Rule? {
    ReadingPace.Rule(window: rateWindow.wholeMilliseconds, rate: settings.minimumRate)
  }

  /// Milliseconds between looks at deadlines: an eighth of the shortest, from 20 ms to 1 s.
  var deadlineTick: Int {
    let shortest = min(
      settings.headerTimeout.wholeMilliseconds, settings.requestTimeout.wholeMilliseconds,
      settings.answerTimeout.wholeMilliseconds)
    return min(max(shortest / 8, 20), 1_000)
  }

  var countedClients: CountedClients {
    CountedClients(proxies: trustedProxies, includesLoopback: countsLoopback)
  }

  /// Returns the connections of a listener and one of its clients. Operators have no shares.
  func connectionLimits(for audience: Audience) -> ConnectionLimits {
    let share = settings.connectionsPerClient
    return ConnectionLimits(
      total: settings.connectionLimit,
      perClient: audience == .operators
        ? .max : share > 0 ? share : max(settings.connectionLimit / 4, 1))
  }

  /// How much work one client may cause.
  var clientBudgets: ClientBudgets {
    let share = settings.maximumActiveRequestsPerClient
    let seconds = settings.imagingTimePerClient / .seconds(1)
    let rate = Double(settings.requestsPerSecond)
    return ClientBudgets(
      activeRequests: share > 0 ? share : max(settings.maximumActiveRequests / 4, 1),
      imagingTime: seconds > 0 ? TokenBucket.Rule(burst: seconds, rate: seconds / 60) : nil,
      requests: rate > 0 ? TokenBucket.Rule(burst: rate * 10, rate: rate) : nil)
  }

  /// The configuration of the operators' listener: one event loop, and no access for pages.
  var forOperators: ServerConfiguration {
    var configuration = self
    configuration.workers = 1
    configuration.connectionLimit = Self.operatorConnections
    configuration.knownTargets = 0
    configuration.proxyProtocol = false
    configuration.settings.maximumActiveRequestsPerClient = .max
    configuration.settings.imagingTimePerClient = .zero
    configuration.settings.requestsPerSecond = 0
    configuration.corsOrigins.removeAll { $0 == "*" }
    return configuration
  }

  /// Adds `Accept-CH`, if responses ask for hints.
  func addHints(to head: inout ResponseHead) {
    if settings.asksForHints { head.add("Accept-CH", value: ClientHints.accepted) }
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

/// Listening sockets that another process has opened, by their numbers. Those of clients replace
/// `server.address`, those of operators `server.operator_address`.
public struct InheritedSockets: Hashable, Sendable {
  /// For clients.
  public var clients: [CInt] = []
  /// For operators.
  public var operators: [CInt] = []

  /// Creates an empty list.
  public init() {}

  /// Returns where a socket listens; `nil` if it is not an IPv4, IPv6 or unix socket with a path.
  public static func address(of descriptor: CInt) -> ListenAddress? {
    ListeningSocket.name(of: descriptor)
  }
}

/// The reason why a server does not start. The description is one line for the operator.
public enum ServerError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The address is not numeric, or the port is out of range.
  case invalidAddress(String)
  /// Listening failed: the address is not local, or not permitted.
  case cannotListen(endpoint: String, reason: String)
  /// Listening failed: another process has the address.
  case addressInUse(endpoint: String)
  /// Threads, descriptors or memory are exhausted.
  case cannotStart(reason: String)

  /// One line: `cannot listen on 127.0.0.1:8080: Address already in use (98)`.
  public var description: String {
    switch self {
    case .invalidAddress(let address): "cannot listen on \(address): it is not a numeric address"
    case .cannotListen(let endpoint, let reason): "cannot listen on \(endpoint): \(reason)"
    case .addressInUse(let endpoint): "cannot listen on \(endpoint): \(errnoText(EADDRINUSE))"
    case .cannotStart(let reason): "cannot start serving: \(reason)"
    }
  }

  /// Runs a step of the start. Its failure names what is missing.
  static func start<Result>(
    needing what: String, _ step: @autoclosure () throws(SystemError) -> Result
  ) throws(ServerError) -> Result {
    do throws(SystemError) {
      return try step()
    } catch {
      throw .cannotStart(reason: "no \(what): \(error)")
    }
  }
}
