// JobScheduler+Overrun: jobs that take far longer than their estimate.

import Model

extension JobScheduler {
  /// Reports that a job which began as a quick one takes long. From now on it counts as an expensive one.
  mutating func overran(_ id: UInt64) {
    guard let entry = running[id], !entry.isBackground, entry.bytes == nil else { return }
    running[id]?.bytes = 0
    running[id]?.hasOverrun = true
  }

  /// The job that gives its slot back, because expensive jobs have more than half of the slots and another job waits. Of
  /// several it is the one that arrived last. `nil` if no job has to.
  var overrunInTheWay: (id: UInt64, slot: Int)? {
    let quick = waiting.count - waiting.count(of: .next) - waiting.count(of: .later)
    guard quick > 0, idle.isEmpty, alone == nil else { return nil }
    let long = running.filter { $0.value.bytes != nil }
    guard long.count > maximumLong else { return nil }
    return long.filter { $0.value.hasOverrun && $0.value.job != nil }.max { $0.key < $1.key }
      .map { ($0.key, $0.value.slot) }
  }

  /// Queues a job with a slot again, behind all others, as an expensive one. The slot has no job then.
  ///
  /// - Returns: `false` if the caller of the job was answered.
  mutating func giveWay(_ id: UInt64) -> Bool {
    guard let run = endRun(of: id), let job = run.job else { return false }
    waiting.append(id, job: job, clients: [run.client], turn: .later)
    return true
  }

  /// Makes the matching queued jobs expensive, except those with a woken slot.
  mutating func postponeWaiting(where isSelected: (Job) -> Bool) {
    waiting.postpone(where: isSelected)
  }
}
