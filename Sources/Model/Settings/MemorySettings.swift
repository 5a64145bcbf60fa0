// MemorySettings: the keys `memory.…`: the memory tier.

/// The settings of the memory tier, `memory.…`.
public struct MemorySettings: Hashable, Sendable {
  /// What all parts and jobs share, in bytes. `nil`: by the memory (`MemoryPlan.budget`).
  public var budget: Int?
  /// Maximum size in bytes. 0 disables the tier. `nil` depends on the available memory
  /// (`MemoryPlan.memoryTier`).
  public var limit: Int?
  /// Maximum number of images; 0 is no limit.
  public var countLimit = 0
  /// The share of the available memory, 0 to 1, from which the tier shrinks. All memory use in the
  /// process's control groups counts. 0 disables shrinking.
  public var pressure = 0.9

  /// Creates the default settings.
  public init() {}
}
