// FreshnessConfiguration: the settings of freshness lifetimes, for all hosts and per host.

import Model

/// The settings of the freshness rules, with the overrides of host rules.
@dynamicMemberLookup
public struct FreshnessConfiguration: Sendable {
  /// The keys `freshness.…`, for all hosts.
  public var settings: FreshnessSettings
  /// The rules for some hosts. The first matching rule applies.
  public var hostRules: [HostRule]

  /// Creates the configuration of freshness rules.
  public init(
    _ settings: FreshnessSettings = FreshnessSettings(), hostRules: [HostRule] = []
  ) {
    self.settings = settings
    self.hostRules = hostRules
  }

  /// A setting of `settings`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<FreshnessSettings, Value>) -> Value {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }

  /// The longest lifetime that the rules give to any response, in seconds.
  public var longestLifetime: Int {
    hostRules.reduce(settings.bounding(.max)) { longest, rule in
      max(longest, settings.overridden(by: rule.freshness).bounding(.max))
    }
  }

  /// Returns the settings for a URL, and whether its origin gets cookies from a cookie jar.
  func settings(for url: SourceURL) -> (FreshnessSettings, keepsCookies: Bool) {
    guard let rule = hostRules.first(where: { $0.covers(url) }) else {
      return (settings, false)
    }
    return (settings.overridden(by: rule.freshness), rule.keepsCookies)
  }
}

extension FreshnessSettings {
  /// Returns a lifetime in seconds within the bounds. The minimum wins if the bounds contradict
  /// each other.
  func bounding(_ lifetime: Int) -> Int {
    max(min(lifetime, maximumLifetime.flooredSeconds), minimumLifetime.flooredSeconds)
  }
}
