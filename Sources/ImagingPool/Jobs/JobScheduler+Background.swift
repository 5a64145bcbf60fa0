// JobScheduler+Background: jobs that run only while slots are idle.

import Model

extension JobScheduler {
  /// The maximum number of background jobs that wait.
  private static var maximumBackground: Int { 16 }

  /// Adds a job that runs alone of its kind, while half of the slots are idle and no other job waits.
  mutating func submitBackground(_ id: UInt64, job: Job) -> Admission {
    guard stopAt == nil, staffed > 0 else { return .refused(.draining) }
    if let fault = commonFault { return .refused(.internal(detail: fault)) }
    guard background.count < Self.maximumBackground else {
      return .refused(.overloaded(queue: "imaging", retryAfter: 1))
    }
    background.append((id, job))
    guard idle.count > slots.count / 2, mayTakeBackground, let slot = idle.popLast() else {
      return .waits
    }
    return .next(wake: slot)
  }

  /// The background job that runs, unless its caller was answered.
  var runningBackground: UInt64? {
    running.first { $1.isBackground && $1.job != nil }?.key
  }

  /// The background job that is to be cancelled, because another job waits for a slot or for its memory.
  var backgroundInTheWay: UInt64? {
    guard waiting.count > 0, let id = runningBackground else { return nil }
    let hasMemory = running[id]?.bytes != nil && waiting.count(of: .later) > 0
    return idle.isEmpty || hasMemory ? id : nil
  }

  /// Removes and returns the waiting background jobs.
  mutating func removeBackground() -> [Job] {
    defer { background.removeAll { _ in true } }
    return background.map(\.job)
  }

  /// Whether a slot may take a background job, apart from the number of idle slots.
  private var mayTakeBackground: Bool {
    waiting.count == 0 && !running.values.contains { $0.isBackground || $0.bytes != nil }
  }

  /// Takes a background job for a slot that is not idle any more.
  mutating func takeBackground() -> (id: UInt64, job: Job)? {
    guard stopAt == nil, idle.count >= slots.count / 2, mayTakeBackground else { return nil }
    return background.popFirst()
  }
}
