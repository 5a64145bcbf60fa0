// MemorySettings: the keys `memory.…`: the memory tier.

/// The settings of the memory tier, `memory.…`.
public struct MemorySettings: Hashable, Sendable {
  /// What all parts and jobs share, in bytes; `nil`: `MemoryPlan.budget`.
  public var budget: Int?
  /// Maximum bytes of the tier; 0 disables it; `nil`: `MemoryPlan.memoryTier`.
  public var limit: Int?
  /// Maximum number of images; 0 is no limit.
  public var countLimit = 0
  /// The share of available memory from which the tier shrinks; 0: never. All memory use in the
  /// process's control groups counts.
  public var pressure = 0.9

  /// Creates the default settings.
  public init() {}
}
