// SharedCache: the port to what the machines of a fleet share.

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

/// The shared tier, and the purges of a fleet.
public protocol SharedCache: Sendable {
  /// What this machine has applied; `nil` while entries may not be shared. Read it before the check
  /// of the entry. Never blocks.
  var mark: SharedMark? { get }
  /// Returns the variant of `key` if no purge covers it.
  ///
  /// - Parameter generation: the variant's generation, read before the call (`PurgeList`).
  func variant(for key: CacheKey, generation: Int) async -> Variant?
  /// Shares a variant in the background, or drops it. Never blocks.
  func store(_ variant: Variant, since mark: SharedMark)
  /// Notes a purge before it is applied here. Shared entries that it covers are refused then.
  ///
  /// - Returns: the purge's number, for `publish`.
  func beginPurge(_ scope: PurgeScope) -> Int
  /// Tells other machines of a purge that is applied here.
  ///
  /// - Parameter isDurable: whether this machine still has the purge after a crash.
  /// - Throws: `internal` if they cannot be told now, nor the purge recorded for later. As long as
  ///   this process runs, they are told later nevertheless.
  func publish(_ scope: PurgeScope, number: Int, isDurable: Bool) async throws(ImageError)
}

/// Variants as bytes.
public protocol VariantCoding: Sendable {
  /// Returns the key, the metadata and the body; `nil` if the body is not in memory.
  func encode(_ variant: Variant) -> [UInt8]?
  /// Returns the variant of `key` in untrusted bytes; `nil` for anything else or lack of memory.
  func decode(_ bytes: UnsafeRawBufferPointer, as key: CacheKey, generation: Int) -> Variant?
}
