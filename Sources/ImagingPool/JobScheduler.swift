// JobScheduler: which job waits, which worker has which, and who is to be told what. No threads, no clocks, no processes.

import Glibc
import Model

/// The state of the pool. Each call says what happened and returns what is to be done about it, outside of any lock.
///
/// Every job that was admitted is handed back exactly once, for its caller to be answered: by `finish`, by `cancel` or
/// by `leave`.
struct JobScheduler<Job> {
  /// The answer to a new job.
  enum Admission {
    /// A slot has nothing to do and is to be woken: nothing goes before this job, whatever its priority.
    case next(wake: Int)
    /// It waits for its turn, which it may be given earlier with `raise`.
    case waits
    /// There is no place for it.
    case refused(ImageError)
  }

  /// What a slot does next.
  enum Next {
    /// This job.
    case job(UInt64, Job)
    /// Wait to be woken; `wake`: a slot that has to take over a job this one was woken for.
    case wait(wake: Int?)
    /// End its worker, and itself.
    case leave
  }

  /// What a slot with a job must know.
  struct Orders: Equatable {
    /// Nobody waits for the job any more.
    var isAbandoned = false
    /// When the worker is to be ended, job or not.
    var stopAt: ContinuousClock.Instant?
  }

  /// What is known of a slot, besides its job.
  struct Slot {
    /// The worker that takes jobs, once there is one.
    var pid: pid_t?
    /// Resident memory of the worker after its last job, in bytes.
    var residentBytes = 0
    /// Why there is no worker and none could be started, until one could.
    var fault: String?
    /// Whether a job has been sent to the worker, for tests.
    var isBusy = false
  }

  /// A job with a slot; `job` is `nil` once its caller has been answered.
  private struct Running {
    let slot: Int
    var job: Job?
    /// Whether it takes long.
    var isLong = false
  }

  /// So many go before one that takes long, which waits for ever otherwise.
  private static var mostPassed: Int { 8 }

  /// Most jobs that may wait, besides those that a slot was woken for.
  let limit: Int
  private(set) var slots: [Slot]
  private var waiting = JobQueue<Job>()
  private var running: [UInt64: Running] = [:]
  /// Jobs that went before one that takes long, since the last of these.
  private var passed = 0
  /// Slots that wait to be woken; the last one is the one that worked last, whose memory is warm.
  private var idle: [Int] = []
  /// Slots that have entered and not left.
  private(set) var staffed = 0
  /// The slot that is to work alone, because its job found too little memory beside others.
  private(set) var alone: Int?
  /// Set once the pool is to end.
  private(set) var stopAt: ContinuousClock.Instant?

  /// No jobs yet, and places for so many slots, none of which has entered.
  init(slots count: Int, limit: Int) {
    self.limit = limit
    slots = Array(repeating: Slot(), count: count)
  }

  var waitingCount: Int { waiting.count }
  var runningCount: Int { running.count }
  var idleCount: Int { idle.count }

  /// A job came. A full queue refuses it whatever its priority: those that were let in before keep their places.
  mutating func submit(_ id: UInt64, _ job: Job, _ priority: LoadPriority) -> Admission {
    guard stopAt == nil, staffed > 0 else { return .refused(.draining) }
    if let fault = commonFault { return .refused(.internal(detail: fault)) }
    // Slots wait only while nobody else does, or others have been woken for them.
    if let slot = idle.popLast() {
      waiting.append(id, job, .next)
      return .next(wake: slot)
    }
    // A slot will take the others at once, so they do not count as waiting.
    guard waiting.count - waiting.count(of: .next) < limit else {
      // Nobody knows how long; a second is what a full queue of small images takes.
      return .refused(.overloaded(queue: "imaging", retryAfter: 1))
    }
    waiting.append(id, job, .by(priority))
    return .waits
  }

  /// Somebody wants a job sooner. Only one that waits for its turn is moved, and never back.
  mutating func raise(_ id: UInt64, to priority: LoadPriority) {
    waiting.raise(id, to: .by(priority))
  }

  /// A slot begins.
  mutating func enter() { staffed += 1 }

  /// A slot asks for work; `isReady`: it has a worker that takes jobs.
  mutating func next(slot: Int, isReady: Bool, now: ContinuousClock.Instant) -> Next {
    idle.removeAll { $0 == slot }
    if let stopAt, now >= stopAt || waiting.count == 0 { return .leave }
    // A slot whose worker died as it was woken cannot do the job, and nobody else was told of it.
    guard isReady else { return .wait(wake: waiting.count > 0 ? idle.popLast() : nil) }
    // All slots are woken when that one is done.
    guard alone == nil else { return .wait(wake: nil) }
    guard let (id, job, isLong) = takeFirst() else {
      idle.append(slot)
      return .wait(wake: nil)
    }
    running[id] = Running(slot: slot, job: job, isLong: isLong)
    return .job(id, job)
  }

  private mutating func takeFirst() -> (id: UInt64, job: Job, isLater: Bool)? {
    let mayTakeLong = hasRoomForLong
    let isTurn = mayTakeLong && passed >= Self.mostPassed
    let first = isTurn ? waiting.popLater() : nil
    let taken = first ?? waiting.popFirst(laterToo: mayTakeLong)
    passed = taken?.isLater == false && waiting.count(of: .later) > 0 ? passed + 1 : 0
    return taken
  }

  /// Whether one more job that takes long may run: of several slots one is left to what is quick.
  private var hasRoomForLong: Bool {
    stopAt != nil || running.values.count { $0.isLong } < max(slots.count - 1, 1)
  }

  /// A slot found that its job takes long. Tells whether it goes on with it; otherwise the job waits again, behind all
  /// that is quick, and the slot has none.
  mutating func takesLong(_ id: UInt64) -> Bool {
    guard let entry = running[id], let job = entry.job else { return true }
    if waiting.count == 0, hasRoomForLong {
      running[id]?.isLong = true
      return true
    }
    running[id] = nil
    waiting.append(id, job, .later)
    return false
  }

  /// Whether a job with a slot is known to take long.
  func isLong(_ id: UInt64) -> Bool { running[id]?.isLong ?? false }

  /// Takes waiting jobs off the board, for their callers to be answered.
  mutating func removeWaiting(where isMeant: (Job) -> Bool) -> [Job] {
    waiting.removeAll(where: isMeant)
  }

  /// What has changed for the slot that has this job.
  func orders(for id: UInt64) -> Orders {
    Orders(isAbandoned: running[id].map { $0.job == nil } ?? true, stopAt: stopAt)
  }

  /// A slot with a job asks to work alone; tells whether it does now. Until it does, it asks again whenever it is woken;
  /// no slot is given another job meanwhile.
  mutating func claimRoom(slot: Int) -> Bool {
    guard alone ?? slot == slot else { return false }
    alone = slot
    return running.values.allSatisfy { $0.slot == slot }
  }

  /// The slot need not work alone any more, or has given up to wait for it. Every slot must be woken if it says so.
  mutating func releaseRoom(slot: Int) -> Bool {
    guard alone == slot else { return false }
    alone = nil
    return true
  }

  /// A slot is done with a job, one way or another; the job is handed back unless that was done before.
  mutating func finish(_ id: UInt64) -> Job? { running.removeValue(forKey: id)?.job }

  /// Nobody wants this job any more; `wake`: the slot that has it. `nil` if it is already answered.
  mutating func cancel(_ id: UInt64) -> (job: Job, wake: Int?)? {
    if let job = waiting.remove(id) { return (job, nil) }
    guard let entry = running[id], let job = entry.job else { return nil }
    running[id]?.job = nil
    return (job, entry.slot)
  }

  /// Changes what is known of a slot. Returns jobs that must be refused, with the reason, because no slot has a worker
  /// or could start one.
  mutating func update(
    slot: Int, _ change: (inout Slot) -> Void
  ) -> (jobs: [Job], reason: ImageError)? {
    change(&slots[slot])
    if slots[slot].pid == nil { idle.removeAll { $0 == slot } }
    guard let commonFault, waiting.count > 0 else { return nil }
    return (waiting.removeAll(), .internal(detail: commonFault))
  }

  /// The pool is to end: nothing more is admitted, and what has not ended at `instant` is given up. Every slot must be
  /// woken. An earlier call's instant holds if it comes first.
  mutating func stop(at instant: ContinuousClock.Instant) {
    stopAt = min(stopAt ?? instant, instant)
  }

  /// A slot has ended. The last one hands back the jobs that nobody will do.
  mutating func leave(slot: Int) -> [Job] {
    idle.removeAll { $0 == slot }
    slots[slot] = Slot()
    staffed -= 1
    return staffed == 0 ? waiting.removeAll() : []
  }

  /// The fault of a slot, where all have one.
  private var commonFault: String? {
    slots.allSatisfy { $0.fault != nil } ? slots.first?.fault : nil
  }
}
