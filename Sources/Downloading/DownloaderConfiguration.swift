// DownloaderConfiguration: what an operator decides about downloads.

import Model

/// How downloads are made. The defaults alone are safe and useful.
public struct DownloaderConfiguration: Sendable {
  /// For a whole transfer: name, connection, TLS, redirects, body. SDWebImage's 15 s.
  public var timeout: Duration = .seconds(15)
  /// For name, connection and TLS of one hop; at most `timeout` counts.
  public var connectTimeout: Duration = .seconds(5)
  /// From a request being sent to the first byte of its answer; at most what is left of `timeout` counts. 0: no limit.
  public var firstByteTimeout: Duration = .seconds(10)
  /// Most retries of one load, 0–5. Only connection failures before a byte came are retried, and 502, 503 and 504 with a
  /// `Retry-After` of two seconds at most; all within `timeout`.
  public var retries = 1
  /// Before the first retry, give or take half of it by chance; it doubles with each further one.
  public var retryDelay: Duration = .milliseconds(200)
  /// Failures in a row (no connection, time-outs, 5xx) after which a host is left alone; 0: never.
  public var breakerThreshold = 5
  /// For how long a host is left alone the first time; each failed probe doubles it, up to five minutes.
  public var breakerOpenTime: Duration = .seconds(30)
  /// A transfer slower than this many bytes a second …
  public var lowSpeedLimit = 128
  /// … for this long, in whole seconds, has timed out; waiting for the first byte counts as slow. 0: never.
  public var lowSpeedTime: Duration = .seconds(15)
  /// Most bytes of one body.
  public var maximumBytes = 64 << 20
  /// Most bytes of all bodies being received at once.
  public var maximumBytesInFlight = 512 << 20
  /// Most bytes of the headers of one answer, interim answers and trailers included.
  public var maximumHeaderBytes = 64 << 10
  /// Most redirects that are followed; 0 follows none.
  public var maximumRedirects = 5
  /// Most transfers at once, at least 1.
  public var limit = 64
  /// Most transfers at once for one host and port, at least 1. SDWebImage's and the browsers' 6.
  public var limitPerHost = 6
  /// After this long without a word of the host it asks, a transfer counts in `limit` no more …
  ///
  /// An operator has no keys for these two: they end no load, which is for the time-outs to do, and what they let
  /// through is as good as idle, a socket each. How many are silent is a figure (`DownloadFigures.silent`).
  public var silentAfter: Duration = .seconds(1)
  /// … as long as no more than so many do.
  public var silentLimit = 256
  /// Most loads that wait for a place; more are refused.
  public var queueLimit = 1_024
  /// Longest wait for a place.
  public var queueTimeout: Duration = .seconds(15)
  /// The order in which loads of one priority get their places.
  public var order = DownloadOrder.fifo
  /// Networks that are let through the address check though they are not public.
  public var allowedNetworks: [CIDR] = []
  /// Hosts that may be fetched from, redirects included.
  public var hosts = HostPolicy()
  /// What is different for some hosts; of several rules for one host, the first counts.
  public var hostRules: [HostRule] = []
  /// URL of the HTTP proxy that all hosts are asked by for which no rule says otherwise, `http://host:port`; it may hold
  /// a user and a password. `nil`: none, whatever the environment says.
  public var proxy: String?
  /// What this server is called in `CDN-Loop` (RFC 8586) and `Via`: a token. Empty: neither is sent.
  public var serverID = ""
  /// The `User-Agent` header.
  public var userAgent = "Pictor"
  /// The `Accept` header: SDWebImage's, with AVIF.
  public var accept = "image/avif,image/webp,image/*;q=0.8"
  /// Idle connections kept for reuse, at least 1.
  public var idleConnectionLimit = 64
  /// How long an idle connection may be reused. Servers commonly close theirs after one or two minutes.
  public var idleConnectionLifetime: Duration = .seconds(60)
  /// How long a resolved name is remembered, whatever its record says. 0: not at all.
  public var dnsCacheLifetime: Duration = .seconds(60)
  /// File of the certificate authorities (PEM) that are trusted; `nil`: the system's.
  public var caFile: String?

  /// The defaults.
  public init() {}
}
