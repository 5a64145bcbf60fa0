// SourceSettings: the keys `sources.…`: sources other than origins.

/// Whose requests may bring their source along.
public enum BodySources: String, CaseIterable, Hashable, Sendable {
  /// No one's.
  case off
  /// Those with a signature or an operator's token.
  case trusted
  /// Everyone's.
  case all
}

/// The settings of sources other than origins, `sources.…`.
public struct SourceSettings: Hashable, Sendable {
  /// Folder of `local:///` URLs; empty disables local sources.
  public var localRoot = ""
  /// What URLs without a scheme are appended to; empty: they are refused.
  public var baseURL = ""
  /// Beginnings of sources, in which `*` is a part without `/?#@:\`, and what replaces them.
  public var replacements: [String: String] = [:]
  /// Beginnings of the URLs that may be loaded; empty: all.
  public var allowed: [String] = []
  /// Whose bodies are sources (`POST /image`).
  public var bodies = BodySources.off
  /// Freshness lifetime of such sources and their results, at most 365 d; 0: they are not stored.
  public var bodyLifetime = Duration.zero
  /// Freshness lifetime of local files, at most 365 d.
  public var localLifetime = Duration.seconds(60)

  /// Creates the default settings.
  public init() {}
}
