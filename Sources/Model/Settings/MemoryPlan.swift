// MemoryPlan: the memory of each part, for settings that are `auto`.

/// Divides the available memory among the server's parts and the workers, with a maximum for each.
///
/// In a container of 512 MiB the budget is 358 MiB: the memory tier gets 64 MiB, bodies 64, images
/// that are sent 32, disk writes 32, and jobs 166. The rest is for the server, workers at rest and
/// the page cache. A single expensive job may use a worker's whole memory.
public struct MemoryPlan: Hashable, Sendable {
  /// Available bytes; `Int.max` if unknown.
  public let room: Int
  /// Available cores.
  public let cores: Int

  /// Creates a plan.
  public init(room: Int, cores: Int) {
    self.room = room
    self.cores = cores
  }

  /// Returns the plan for unlimited memory: each part gets its maximum.
  public static func unlimited(cores: Int = 1) -> MemoryPlan {
    MemoryPlan(room: .max, cores: cores)
  }

  /// Creates the plan for a budget, in bytes.
  public init(budget: Int, cores: Int) { self.init(room: budget / 7 * 10, cores: cores) }

  /// `memory.budget`, in bytes: what all parts and jobs may hold together; `Int.max` if unknown.
  public var budget: Int { room == .max ? .max : room / 10 * 7 }

  /// The least memory of jobs for each worker, in bytes, even if the parts leave less.
  public static let leastJobMemory = 64 << 20

  /// The memory of all jobs together besides that of workers at rest, in bytes: what the parts
  /// leave of the budget, but at least `leastJobMemory` for each worker.
  ///
  /// - Parameters:
  ///   - parts: The bytes of the other parts together.
  ///   - workers: The number of workers.
  public func jobs(beside parts: Int, workers: Int) -> Int {
    budget == .max ? .max : max(budget - parts, workers * Self.leastJobMemory)
  }

  /// `memory.limit`, in bytes.
  public var memoryTier: Int { min(256 << 20, room / 8) }

  /// Images in memory that the tier does not have, until they are sent or stored, in bytes.
  public var responses: Int { min(256 << 20, room / 16) }

  /// Bytes that may wait to be written to disk.
  public var writeQueue: Int { min(64 << 20, room / 16) }

  /// Bodies being received, in bytes: at least one of the maximum length.
  public func bodies(ofAtMost maximumBytes: Int) -> Int {
    min(512 << 20, max(room / 8, maximumBytes))
  }

  /// The most request targets whose cache keys are kept after a hit.
  public static let mostKnownTargets = 1 << 18

  /// The number of such targets of up to 512 bytes: a thirty-second of the available memory.
  public var knownTargets: Int { min(Self.mostKnownTargets, room / 32 / 512) }

  /// `imaging.workers`: one per core, each with at least 160 MiB.
  public var workers: Int { max(min(cores, room / (160 << 20)), 1) }

  /// `imaging.worker_memory`, in bytes: half of the available memory, so that one large image fits.
  public var workerMemory: Int { min(2 << 30, max(room / 2, 64 << 20)) }

  /// The memory that an idle worker may hold, in bytes.
  public var retireAbove: Int { min(256 << 20, max(room / 8, 48 << 20)) }
}
