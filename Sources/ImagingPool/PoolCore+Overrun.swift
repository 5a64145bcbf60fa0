// PoolCore+Overrun: what the pool does about jobs that take far longer than their estimate.

import Model

extension PoolCore {
  /// Reports that a job which began as a quick one takes long. Its source's other jobs wait as expensive ones.
  func overran(_ id: UInt64, _ source: SourceIdentity?) {
    if let source { costly.withLock { $0.add(source, now: .now) } }
    let (later, slot) = board.withLock { board in
      board.overran(id)
      if let source { board.postponeWaiting { $0.job.source == source } }
      return (board.slotForWaiting(), board.overrunInTheWay?.slot)
    }
    wake(later)
    wake(slot)
  }

  /// Queues a job with a slot again, because it takes long and others wait.
  ///
  /// - Returns: `false` if its caller was answered.
  func giveWay(_ id: UInt64) -> Bool {
    let (isQueued, later) = board.withLock { ($0.giveWay(id), $0.slotForWaiting()) }
    wake(later)
    return isQueued
  }

  /// Whether jobs of this source start as expensive ones.
  func isCostly(_ source: SourceIdentity?) -> Bool {
    guard let source else { return false }
    return costly.withLock { $0.contains(source, now: .now) }
  }

  /// Records that a job exceeded the processor time. Returns whether its source is to blame.
  func blamesSource(_ source: SourceIdentity?, for transform: Transform) -> Bool {
    if transform.isPlainReduction { return true }
    guard let source else { return false }
    return costly.withLock { $0.stopped(source, transform, now: .now) }
  }
}
