// DownloadSettings: the keys `download.…`: transfers from origins.

/// The order of downloads of equal priority (SDWebImageDownloaderExecutionOrder).
public enum DownloadOrder: String, Hashable, Sendable, CaseIterable {
  /// First in, first out.
  case fifo
  /// Last in, first out: a list that scrolls fast first shows what is visible now.
  case lifo
}

/// The settings of the downloader, `download.…`. The defaults are safe.
public struct DownloadSettings: Hashable, Sendable {
  /// Time-out of a whole transfer with its redirects (SDWebImage's).
  public var timeout = Duration.seconds(15)
  /// Time-out for name, connection and TLS of one hop.
  public var connectTimeout = Duration.seconds(5)
  /// Time in whole seconds below the minimum rate after which a transfer times out, including the
  /// wait for the first byte; `nil`: 15 s, or `firstByteTimeout` if that is longer.
  public var lowSpeedTime: Duration?
  /// Time-out from a request to the first byte of its response; 0: no limit of its own.
  public var firstByteTimeout = Duration.seconds(10)
  /// Maximum retries of one download, all within `timeout`.
  public var retries = 1
  /// Delay before the first retry, 1 ms to 10 s, ± 50 % jitter; doubles with each further one.
  public var retryDelay = Duration.milliseconds(200)
  /// Consecutive failures (no connection, time-outs, 5xx) that open a host's circuit; 0: never.
  public var breakerThreshold = 5
  /// How long a circuit breaker stays open the first time, at most 5 min. Each failed probe doubles
  /// the time, up to five minutes.
  public var breakerOpenTime = Duration.seconds(30)
  /// The order of waiting downloads of equal priority.
  public var order = DownloadOrder.fifo
  /// Maximum transfers at once.
  public var limit = 64
  /// Maximum transfers at once per host and port. Browsers and SDWebImage use 6.
  public var limitPerHost = 6
  /// Transfers of one client at once while others wait; 0: a quarter of `limit`.
  public var limitPerClient = 0
  /// Maximum waiting downloads.
  public var queueLimit = 1_024
  /// Maximum time a download waits for a slot; `nil`: `timeout`.
  public var queueTimeout: Duration?
  /// Maximum size of a source, in bytes.
  public var maximumBytes = 64 << 20
  /// Maximum number of redirects followed, 0–50.
  public var maximumRedirects = 5
  /// Networks (CIDR) that are allowed although they are not public.
  public var allowNetworks: [String] = []
  /// Patterns of allowed sources (`SourcePattern`), redirects included; empty: all.
  public var allowHosts: [String] = []
  /// Ports that sources may be loaded from (`PortRange`); empty: all. Below 1024 there are the
  /// ports of mail, shells and other services that no image comes from.
  public var ports = ["80", "443", "1024-65535"]
  /// Patterns of denied sources; they take precedence over `allowHosts`.
  public var denyHosts: [String] = []
  /// URL of the HTTP proxy for hosts without a rule of their own. No environment variable counts.
  public var proxy: SecretText?
  /// File of trusted certificate authorities (PEM); empty: the system's.
  public var caFile = ""

  /// Creates the default settings.
  public init() {}
}
