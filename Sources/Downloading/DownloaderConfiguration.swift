// DownloaderConfiguration: the settings of the downloader, with checked values and fixed limits.

import Model
import Platform
import Telemetry

/// The settings of the downloader, with what the program checks and resolves, and with limits that
/// operators cannot set. The defaults are safe.
@dynamicMemberLookup
public struct DownloaderConfiguration: Sendable {
  /// The keys `download.…`.
  public var settings: DownloadSettings
  /// Maximum total size of the bodies being received, in bytes.
  public var maximumBytesInFlight: Int
  /// The minimum rate of a transfer, in bytes per second.
  public var lowSpeedLimit = 128
  /// Maximum size of a response's header in bytes, including interim responses and trailers.
  public var maximumHeaderBytes = 64 << 10
  /// A transfer with no response after this long stops counting against `limit` (at most
  /// `silentLimit` of them).
  ///
  /// Not configurable by operators, because these transfers are nearly idle and their time-outs
  /// still apply. `silent` in `/stats` counts them.
  public var silentAfter: Duration = .seconds(1)
  /// How long a response shows that its host is alive. A transfer that is silent meanwhile says something about its URL
  /// only.
  public var aliveAfterResponse: Duration = .seconds(10)
  /// Maximum number of stalled transfers, silent or slow, that do not count against `limit`. Beyond
  /// it, the slowest one ends when another download waits for its place.
  public var silentLimit = 256
  /// A transfer below this rate, in bytes per second, counts as slow: it no longer counts against
  /// `limit`, but continues until `timeout`.
  public var slowRate = 16 << 10
  /// How long a transfer's rate is measured, first from its response on, then again and again.
  public var slowWindow: Duration = .seconds(2)
  /// Networks that are allowed although they are not public.
  public var allowedNetworks: [CIDR] = []
  /// Hosts, ports and paths that downloads may use, including redirects.
  public var hosts = HostPolicy()
  /// Sources whose origins get the trace of a load (`tracing.propagate`); empty: none.
  public var traced: [SourcePattern] = []
  /// Receives a span for each request of a sampled load; `nil`: none is recorded.
  public var spans: (any SpanSink)?
  /// Settings for particular hosts, with their secrets; the first matching rule applies.
  public var hostRules: [HostRule] = []
  /// URL of the HTTP proxy for hosts without a rule of their own, `http://host:port`, optionally
  /// with user and password. `nil`: no proxy; environment variables are ignored.
  public var proxy: String?
  /// What this server is called in `CDN-Loop` (RFC 8586) and `Via`: a token. Empty: neither is sent.
  public var serverID = ""
  /// The `User-Agent` header.
  public var userAgent = "Pictor"
  /// The `Accept` field: SDWebImage's, with AVIF.
  public var accept = "image/avif,image/webp,image/*;q=0.8"
  /// Maximum number of idle connections kept for reuse, at least 1.
  public var idleConnectionLimit = 64
  /// How long an idle connection may be reused. Servers commonly close theirs after one or two
  /// minutes.
  public var idleConnectionLifetime: Duration = .seconds(60)
  /// How long the addresses of a name are remembered, regardless of their TTL. 0: not at all.
  public var dnsCacheLifetime: Duration = .seconds(60)

  /// How long a name that does not exist is remembered, at most `dnsCacheLifetime`.
  public var unknownNameLifetime: Duration = .seconds(5)
  /// Maximum number of threads that look names up, at least 1.
  public var nameLimit = 2_048

  /// Addresses of names, `name:port:address`, in place of a resolver's; set by tests.
  var knownAddresses: [String] = []
  /// Asks the resolver for a name, on a thread of its own; replaced by tests.
  var lookUp: NameResolver.Look = SystemNames.addresses
  /// Makes loads report their connections instead of making them. `nil` except in the self-test.
  var dryRun: DryRun?

  /// Creates the configuration of a downloader; the plan decides what `settings` leave open.
  public init(
    _ settings: DownloadSettings = DownloadSettings(), plan: MemoryPlan = .unlimited()
  ) {
    self.settings = settings
    hosts.ports = settings.ports.compactMap(PortRange.init)
    maximumBytesInFlight =
      settings.maximumBytesInFlight ?? plan.bodies(ofAtMost: settings.maximumBytes)
  }

  /// Transfers of one client at once while others wait, at least 1.
  var share: Int {
    settings.limitPerClient > 0 ? settings.limitPerClient : max(settings.limit / 4, 1)
  }

  /// How many downloads run and wait.
  var queueLimits: DownloadQueue.Limits {
    DownloadQueue.Limits(
      total: settings.limit, perHost: settings.limitPerHost, share: share, silent: silentLimit,
      waiting: settings.queueLimit, timeout: settings.queueTimeout)
  }

  /// When a host counts as silent or slow.
  var paceLimits: TransferPace.Limits {
    TransferPace.Limits(
      silentAfter: silentAfter, window: slowWindow, minimumRate: slowRate)
  }

  /// Logs a warning for hosts whose certificates are not verified.
  func warnOfUnverifiedHosts(_ log: Log) {
    let unverified = hostRules.filter(\.allowsInvalidCertificates)
    guard !unverified.isEmpty else { return }
    let hosts = unverified.map(\.host.description).joined(separator: ", ")
    log.warning("certificates are not verified", fields: ["hosts": .string(hosts)])
  }

  /// Returns the trace that the origin of a hop is told, if it may know one. A pattern has to cover each
  /// way of reading the path, as on the allow list.
  func tells(_ trace: TraceContext?, to target: DownloadTarget) -> TraceContext? {
    guard let trace, !traced.isEmpty else { return nil }
    let path = PathReading(target.url.path)
    let isTraced = traced.contains {
      $0.covers(host: target.host, port: target.url.port, path: path)
    }
    return isTraced ? trace : nil
  }

  /// A setting of `settings`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<DownloadSettings, Value>) -> Value {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }
}
