// DownloaderConfiguration: the settings of the downloader.

import Model

/// The settings of the downloader. The defaults are safe.
public struct DownloaderConfiguration: Sendable {
  /// Time-out of a whole transfer: name, connection, TLS, redirects and body. SDWebImage's 15 s.
  public var timeout: Duration = .seconds(15)
  /// Time-out for name, connection and TLS of one hop; limited by `timeout`.
  public var connectTimeout: Duration = .seconds(5)
  /// Time-out from sending a request to the first byte of the response; limited by the rest of
  /// `timeout`. 0: no limit.
  public var firstByteTimeout: Duration = .seconds(10)
  /// Maximum retries of one download, 0–5, all within `timeout`. Retried are connection failures
  /// before the first byte, and 502, 503 and 504 with a `Retry-After` of at most two seconds.
  public var retries = 1
  /// Delay before the first retry, with ± 50 % jitter; doubles with each further retry.
  public var retryDelay: Duration = .milliseconds(200)
  /// Consecutive failures (no connection, time-outs, 5xx) that open a host's circuit breaker; 0:
  /// never.
  public var breakerThreshold = 5
  /// How long a circuit breaker stays open the first time. Each failed probe doubles the time, up
  /// to five minutes.
  public var breakerOpenTime: Duration = .seconds(30)
  /// The minimum rate of a transfer, in bytes per second.
  public var lowSpeedLimit = 128
  /// Time in whole seconds below `lowSpeedLimit` after which a transfer times out, including the
  /// wait for the first byte. 0: never.
  public var lowSpeedTime: Duration = .seconds(15)
  /// Maximum size of a body, in bytes.
  public var maximumBytes = 64 << 20
  /// Maximum total size of the bodies being received, in bytes.
  public var maximumBytesInFlight = 512 << 20
  /// Maximum size of a response's header in bytes, including interim responses and trailers.
  public var maximumHeaderBytes = 64 << 10
  /// Maximum number of redirects followed; 0 follows none.
  public var maximumRedirects = 5
  /// Maximum number of concurrent transfers, at least 1.
  public var limit = 64
  /// Maximum number of concurrent transfers per host and port, at least 1. Browsers and SDWebImage
  /// use 6.
  public var limitPerHost = 6
  /// A transfer with no response after this long stops counting against `limit` (at most
  /// `silentLimit` of them).
  ///
  /// Not configurable by operators, because these transfers are nearly idle and their time-outs
  /// still apply. `DownloadFigures.silent` counts them.
  public var silentAfter: Duration = .seconds(1)
  /// Maximum number of silent transfers that do not count against `limit`.
  public var silentLimit = 256
  /// Maximum number of waiting downloads; further ones are refused.
  public var queueLimit = 1_024
  /// Maximum wait in the queue.
  public var queueTimeout: Duration = .seconds(15)
  /// The order of downloads of equal priority.
  public var order = DownloadOrder.fifo
  /// Networks that are allowed although they are not public.
  public var allowedNetworks: [CIDR] = []
  /// Hosts that downloads may use, including redirects.
  public var hosts = HostPolicy()
  /// Settings for particular hosts; the first matching rule applies.
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
  /// How long a resolved name is cached, regardless of its TTL. 0: not at all.
  public var dnsCacheLifetime: Duration = .seconds(60)
  /// File of trusted certificate authorities (PEM); `nil`: the system's.
  public var caFile: String?

  /// Creates the default configuration.
  public init() {}
}
