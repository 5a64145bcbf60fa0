// Configuration: all settings of the server, made of the settings of its parts.

/// The settings of a server. The defaults are safe and useful. `ConfigurationKeys` maps keys to
/// settings. Each default is in the type of its section (Sources/Model/Settings).
public struct Configuration: Hashable, Sendable {
  /// `server.…`
  public var server = ServerSettings()
  /// `presets`: named queries of `/image`, without `url`.
  public var presets: [String: String] = [:]
  /// `watermarks`: URLs of watermark images, by name.
  public var watermarks: [String: String] = [:]
  /// `fallbacks`: URLs of fallback images, by name.
  public var fallbacks: [String: String] = [:]
  /// `hosts`: settings for particular hosts.
  public var hosts: [HostRule] = []
  /// `doors`: the peers whose addresses are served.
  public var doors: [Peer: DoorSettings] = [:]
  /// `signing.…`
  public var signing = SigningSettings()
  /// `admin.…`
  public var admin = AdminSettings()
  /// `memory.…`
  public var memory = MemorySettings()
  /// `disk.…`
  public var disk = DiskSettings()
  /// `freshness.…`
  public var freshness = FreshnessSettings()
  /// `failures.…`
  public var failures = FailureSettings()
  /// `download.…`
  public var download = DownloadSettings()
  /// `sources.…`
  public var sources = SourceSettings()
  /// `imaging.…`
  public var imaging = ImagingSettings()
  /// `prefetch.…`
  public var prefetch = PrefetchSettings()
  /// `log.…`
  public var log = LogSettings()
  /// `fleet.…`
  public var fleet = FleetSettings()
  /// `tracing.…`
  public var tracing = TracingSettings()
}

/// The configuration of a part: its section, whose settings are members of it too, and what the
/// program adds.
@dynamicMemberLookup
public protocol PartConfiguration: Sendable {
  /// The settings of a section.
  associatedtype Settings
  /// The section.
  var settings: Settings { get set }
}

extension PartConfiguration {
  /// A setting of `settings`.
  @inlinable public subscript<Value>(dynamicMember path: WritableKeyPath<Settings, Value>) -> Value
  {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }
}
