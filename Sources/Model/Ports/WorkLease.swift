// WorkLease: the right of one machine of a fleet to make a variant or to load a source, while others wait for it.

/// A lease in the fleet. While it is held, other machines wait for the variant or the source instead of working too.
public protocol WorkLease: Sendable {
  /// The work has ended. If its result was shared, others are told once they can read it; otherwise they are told to
  /// work themselves. Never blocks, and does nothing for a lease that has ended.
  ///
  /// - Parameter admit: shares a variant that waits for a second request; called if another machine waits for it.
  func end(admitting admit: (@Sendable () -> Void)?)
}

/// What a machine does about a variant or a source that neither it nor the shared tier has.
public enum LeaseOutcome<Shared: Sendable>: Sendable {
  /// It works without a lease: there are no leases, Redis is away, or waiting has not helped.
  case none
  /// It works, and others wait for it. The holder has to end the lease.
  case held(any WorkLease)
  /// Another machine has it.
  case shared(Shared)
  /// It works, and knows from another machine that the source fails.
  case failed(SharedFailure)
}

/// What a machine needs to know about a wait for another machine's variant.
public struct LeaseRequest: Sendable {
  /// The variant.
  public let key: CacheKey
  /// Whether to wait for another machine. Without, a free lease is taken.
  public let waits: Bool
  /// Returns the generation for a shared variant, read before each look-up (`PurgeList`).
  public let generation: @Sendable () -> Int
  /// Whether a shared variant answers the request.
  public let accepts: @Sendable (Variant) async -> Bool

  /// Creates a request.
  public init(
    key: CacheKey, waits: Bool, generation: @escaping @Sendable () -> Int,
    accepts: @escaping @Sendable (Variant) async -> Bool
  ) {
    self.key = key
    self.waits = waits
    self.generation = generation
    self.accepts = accepts
  }
}

/// What a machine needs to know about a source that another machine has or loads.
public struct SharedSourceRequest: Sendable {
  /// The source.
  public let key: CacheKey
  /// Returns the generation for a shared source, read before each look-up (`PurgeList`).
  public let generation: @Sendable () -> Int
  /// Whether a shared source of this freshness answers the request.
  public let accepts: @Sendable (Freshness) -> Bool

  /// Creates a request.
  public init(
    key: CacheKey, generation: @escaping @Sendable () -> Int,
    accepts: @escaping @Sendable (Freshness) -> Bool
  ) {
    self.key = key
    self.generation = generation
    self.accepts = accepts
  }
}
