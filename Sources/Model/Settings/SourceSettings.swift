// SourceSettings: the keys `sources.…`: sources other than origins.

/// The settings of sources other than origins, `sources.…`.
public struct SourceSettings: Hashable, Sendable {
  /// Folder of `local:///` URLs; empty disables local sources.
  public var localRoot = ""
  /// What URLs without a scheme are appended to; empty: they are refused.
  public var baseURL = ""
  /// Freshness lifetime of local files, at most 365 d.
  public var localLifetime = Duration.seconds(60)

  /// Creates the default settings.
  public init() {}
}
