// DownloaderConfiguration: the settings of the downloader, with checked values and fixed limits.

import Model
import Platform

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
  /// still apply. `DownloadFigures.silent` counts them.
  public var silentAfter: Duration = .seconds(1)
  /// Maximum number of silent transfers that do not count against `limit`.
  public var silentLimit = 256
  /// Networks that are allowed although they are not public.
  public var allowedNetworks: [CIDR] = []
  /// Hosts that downloads may use, including redirects.
  public var hosts = HostPolicy()
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
  /// How long a resolved name is cached, regardless of its TTL. 0: not at all.
  public var dnsCacheLifetime: Duration = .seconds(60)

  /// Creates the configuration of a downloader; the plan decides what `settings` leave open.
  public init(
    _ settings: DownloadSettings = DownloadSettings(), plan: MemoryPlan = .unlimited()
  ) {
    self.settings = settings
    maximumBytesInFlight =
      settings.maximumBytesInFlight ?? plan.bodies(ofAtMost: settings.maximumBytes)
  }

  /// A setting of `settings`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<DownloadSettings, Value>) -> Value {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }
}
