// ScarceJobMemory: recognizes keys that leave jobs only their least memory.

import Caching
import Core
import Downloading

/// The warning about keys that take the memory of jobs.
enum ScarceJobMemory {
  /// Returns the warning, or `nil` if jobs have more than their least memory, or no key that is set
  /// above its automatic value is the cause.
  ///
  /// - Parameters:
  ///   - parts: the bytes of the other parts together.
  ///   - workers: the number of workers.
  static func warning(
    _ configuration: Configuration, plan: MemoryPlan, parts: Int, workers: Int
  ) -> String? {
    let left = max(plan.budget - parts, 0)
    let least = workers * MemoryPlan.leastJobMemory
    guard plan.budget != .max, left < least else { return nil }
    var causes: [String] = []
    if let limit = configuration.memory.limit, limit > plan.memoryTier {
      causes.append("memory.limit \(mebibytes(limit))")
    }
    let body = configuration.download.maximumBytes
    if body > plan.bodies(ofAtMost: DownloadSettings().maximumBytes) {
      causes.append("download.maximum_bytes \(mebibytes(body))")
    }
    if configuration.imaging.workers > plan.workers { causes.append("imaging.workers \(workers)") }
    guard !causes.isEmpty else { return nil }
    let budget = configuration.memory.budget == nil ? "memory.budget auto" : "memory.budget"
    return "jobs have only their least memory, \(mebibytes(least)) for imaging.workers \(workers): "
      + "of \(budget) \(mebibytes(plan.budget)), \(causes.joined(separator: ", ")) leave "
      + "\(mebibytes(left)); lower them or raise memory.budget"
  }

  private static func mebibytes(_ bytes: Int) -> String { "\(bytes >> 20) MiB" }
}
