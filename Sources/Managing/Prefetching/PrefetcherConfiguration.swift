// PrefetcherConfiguration: the limits of a prefetcher.

import Model

/// The limits of a prefetcher.
@dynamicMemberLookup
public struct PrefetcherConfiguration: Sendable {
  /// The keys `prefetch.…`.
  public var settings: PrefetchSettings
  /// The number of ended lists whose status stays available.
  public var endedLists = 64

  /// Creates the limits.
  public init(_ settings: PrefetchSettings = PrefetchSettings()) { self.settings = settings }

  /// A setting of `settings`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<PrefetchSettings, Value>) -> Value {
    @inline(__always) get { settings[keyPath: path] }
    @inline(__always) set { settings[keyPath: path] = newValue }
  }
}
