// SharedCache: the port to what the machines of a fleet share.

import Platform

/// What a machine knows of purges when it checks an entry that it is about to share.
public struct SharedMark: Hashable, Sendable {
  /// The epoch of the purge stream.
  public let epoch: String
  /// The last purge that the machine has applied: milliseconds, and a number within them.
  public let milliseconds: UInt64
  /// See `milliseconds`.
  public let number: UInt64

  /// Creates a mark.
  public init(epoch: String, milliseconds: UInt64, number: UInt64) {
    self.epoch = epoch
    self.milliseconds = milliseconds
    self.number = number
  }
}

/// A failure of a source, as one machine tells it to the others.
public struct SharedFailure: Hashable, Sendable {
  /// The key of the source.
  public let key: CacheKey
  /// The failure, without wrappers.
  public let error: ImageError
  /// How long it is remembered from now, in seconds, at least 1.
  public let seconds: Int
  /// How long private caches may keep it from now, in seconds, 0 to `seconds`.
  public let clientSeconds: Int

  /// Creates a failure. `clientSeconds` is clamped to its range.
  public init(key: CacheKey, error: ImageError, seconds: Int, clientSeconds: Int) {
    self.key = key
    self.error = error
    self.seconds = seconds
    self.clientSeconds = min(max(clientSeconds, 0), seconds)
  }
}

/// What the shared tier has for a variant.
public struct SharedLookup: Sendable {
  /// The variant, fresh or not.
  public var variant: Variant?
  /// The failure of its source.
  public var failure: SharedFailure?
  /// The variant's lease, if it was asked for and free, and nothing was found. The caller has to end it.
  public var lease: (any WorkLease)?

  /// Creates a result; by default nothing was found.
  public init(
    variant: Variant? = nil, failure: SharedFailure? = nil, lease: (any WorkLease)? = nil
  ) {
    self.variant = variant
    self.failure = failure
    self.lease = lease
  }
}

/// The shared tier, and the purges of a fleet.
public protocol SharedCache: Sendable {
  /// What this machine has applied; `nil` while entries may not be shared. Read it before the check of the entry. Never
  /// blocks.
  var mark: SharedMark? { get }
  /// Whether failures are shared.
  var sharesFailures: Bool { get }
  /// Returns the variant of `key` and the failure of its source, as far as no purge covers them. Anything else is `nil`.
  ///
  /// - Parameters:
  ///   - generation: the generation that the variant gets, read before the call (`PurgeList`).
  ///   - withFailure: whether to look for the failure.
  ///   - takingLease: whether to take the variant's lease if it is free and nothing is found, without a wait.
  func look(
    for key: CacheKey, generation: Int, withFailure: Bool, takingLease: Bool
  ) async -> SharedLookup
  /// Shares a variant in the background, or drops it. Never blocks.
  func store(_ variant: Variant, since mark: SharedMark)
  /// Shares a failure in the background, or drops it: failures that may be this machine's own are not shared. Never
  /// blocks.
  func share(_ failure: SharedFailure, since mark: SharedMark)
  /// Removes the shared failure of a source in the background, because the source could be loaded. Never blocks.
  func removeFailure(of source: CacheKey)
  /// Takes the lease of a variant that neither this machine nor the shared tier has, or waits for the machine that has
  /// it, no longer than a bound. Ends early if the task is cancelled or Redis is away.
  func lease(_ request: LeaseRequest) async -> LeaseOutcome<Variant>
  /// The sources that machines share; `nil` without a bucket for them.
  var sources: (any SharedSources)? { get }
  /// Notes a purge of this machine before it is applied here: shared entries that it covers are refused from now on.
  ///
  /// - Returns: the purge's number, for `publish`.
  func beginPurge(_ scope: PurgeScope) -> Int
  /// Tells other machines of a purge that is applied here.
  ///
  /// - Parameter isDurable: whether this machine still has the purge after a crash.
  /// - Throws: `internal` if they cannot be told now, nor the purge recorded for later. As long as this process runs, they
  ///   are told later nevertheless.
  func publish(_ scope: PurgeScope, number: Int, isDurable: Bool) async throws(ImageError)
}

/// The sources of the shared tier.
public protocol SharedSources: Sendable {
  /// Returns a source that no purge covers and that the request accepts. Otherwise takes the lease of its download, or
  /// waits for the machine that has it, no longer than a bound. Ends early if the task is cancelled or Redis is away.
  func source(_ request: SharedSourceRequest) async -> LeaseOutcome<Source>
  /// Shares a source in the background, or drops it. Never blocks.
  func store(_ source: Source, since mark: SharedMark)
  /// Removes a source in the background, because it is broken or gone: it must not come back from the shared tier. Never
  /// blocks.
  ///
  /// - Parameter version: the version that this machine does not take again, nor shares.
  func remove(_ key: CacheKey, version: UInt64)
}

/// The metadata of sources as bytes.
public protocol SourceCoding: Sendable {
  /// Returns the key and the metadata.
  func encode(_ source: Source) -> [UInt8]
  /// Returns the source of `key` with the metadata in untrusted bytes, as a function of its body; `nil` if they hold
  /// anything else.
  func decode(
    _ bytes: UnsafeRawBufferPointer, as key: CacheKey, generation: Int
  ) -> (freshness: Freshness, make: @Sendable (FileRegion) -> Source)?
}

/// Variants as bytes.
public protocol VariantCoding: Sendable {
  /// Returns the key, the metadata and the body; `nil` if the body is not in memory.
  func encode(_ variant: Variant) -> [UInt8]?
  /// Returns the variant of `key` in untrusted bytes; `nil` if they hold anything else, or if memory has no room.
  func decode(_ bytes: UnsafeRawBufferPointer, as key: CacheKey, generation: Int) -> Variant?
}
