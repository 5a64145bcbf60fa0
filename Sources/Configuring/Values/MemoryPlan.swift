// MemoryPlan: how much memory each part gets where the configuration says `auto`.

/// Shares of the memory that there is for the server and its workers, up to what each part has use for.
///
/// In a container of 512 MiB the tier has 64 MiB, bodies 64, what waits for the disk 32; two workers may take 256 each. They
/// may be too much together: then the kernel ends one, whose job waits until it is alone (docs/operations.md).
public struct MemoryPlan: Hashable, Sendable {
  /// Bytes that there are, `Int.max` where that is not known.
  public let room: Int
  /// Cores that there are.
  public let cores: Int

  /// A plan.
  public init(room: Int, cores: Int) { (self.room, self.cores) = (room, cores) }

  /// `memory.limit`.
  public var memoryTier: Int { min(256 << 20, room / 8) }

  /// `disk.write_queue_limit`.
  public var writeQueue: Int { min(64 << 20, room / 16) }

  /// `download.maximum_bytes_in_flight`: at least one body of the greatest length.
  public func bodies(ofAtMost maximumBytes: Int) -> Int {
    min(512 << 20, max(room / 8, maximumBytes))
  }

  /// `imaging.workers`: one per core, and none that has less than 160 MiB for itself.
  public var workers: Int { max(min(cores, room / (160 << 20)), 1) }

  /// `imaging.worker_memory`: half of what there is for each, so that a large image has room while no other is made.
  public var workerMemory: Int { min(2 << 30, max(room / 2, 64 << 20)) }

  /// `imaging.retire_above`: what workers may hold that have nothing to do.
  public var retireAbove: Int { min(256 << 20, max(room / 8, 48 << 20)) }
}
