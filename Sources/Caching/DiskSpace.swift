// DiskSpace: how many bytes the disk tier takes, promised ones included.

import Synchronization

/// The tier's account: what is on disk as `du` counts it, and what has been promised to writes under way. It is never
/// above the limit, save at a start with a limit lower than before, until the first clean.
final class DiskSpace: Sendable {
  let limit: Int
  private let taken = Atomic<Int>(0)

  init(limit: Int) { self.limit = limit }

  /// Bytes taken or promised.
  var bytes: Int { taken.load(ordering: .relaxed) }

  /// Above this, a clean is due although everything still fits: so that writes need not be refused while it runs.
  var highWater: Int { limit - limit / 16 }

  /// Promises so many bytes, if they fit.
  func reserve(_ amount: Int) -> Bool { taken.add(amount, upTo: limit) }

  /// Notes that so many bytes more, or less, are taken.
  func add(_ amount: Int) { taken.wrappingAdd(amount, ordering: .relaxed) }
}
