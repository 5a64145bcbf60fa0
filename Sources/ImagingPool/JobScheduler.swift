// JobScheduler: assigns jobs to worker slots; a pure state machine without threads, clocks or
// processes.

import Core
import Glibc

/// The state of the pool. Each call reports an event and returns the actions to take outside the
/// lock.
///
/// Each admitted job is handed back exactly once to answer its caller: by `finish`, `cancel`,
/// `removeWaiting`, `update` or `leave`.
struct JobScheduler<Job> {
  /// The result of submitting a job.
  enum Admission {
    /// A slot is idle and must be woken. The job goes before all others, regardless of its
    /// priority, unless it is expensive.
    case next(wake: Int)
    /// The job is queued. `raise` can move it forward.
    case waits
    /// The job is refused.
    case refused(ImageError)
  }

  /// The next action of a slot.
  enum Next {
    /// Perform this job.
    case job(UInt64, Job)
    /// Wait for a signal. `wake` is an idle slot to wake for a job that this slot cannot take.
    case wait(wake: Int?)
    /// Stop the worker and end the slot.
    case leave
  }

  /// Changes that a slot with a job must obey.
  struct Orders: Equatable {
    /// Whether the job was cancelled or answered.
    var isAbandoned = false
    /// Whether the worker must be stopped and the job queued again, because it takes long and
    /// others wait.
    var givesWay = false
    /// When the worker must be stopped, even with a job.
    var stopAt: ContinuousClock.Instant?
  }

  /// The state of a slot, besides its job.
  struct Slot {
    /// The ready worker, if any.
    var pid: pid_t?
    /// Resident memory of the worker after its last job, in bytes.
    var residentBytes = 0
    /// Why no worker could start. Cleared by the next successful start.
    var fault: String?
    /// Whether a job has been sent to the worker; for tests.
    var isBusy = false
  }

  /// A job with a slot; `job` is `nil` once its caller has been answered.
  struct Running {
    let slot: Int
    var job: Job?
    /// Whose turn it was.
    var client = LoadClient.unlimited
    /// The estimated memory of an expensive job (`JobCost`), in bytes, 0 if it is unknown; `nil`
    /// for any other.
    var bytes: Int?
    /// Whether the job gives way to others.
    var isBackground = false
    /// Whether the job began as a quick one and took longer (`overran`).
    var hasOverrun = false
  }

  /// The most threads of a job. A job has few steps that gain from more.
  private static var maximumThreads: Int { 4 }
  /// The number of other jobs that may overtake an expensive one. Without a limit it could wait
  /// forever.
  private static var maximumPassed: Int { 8 }

  /// The maximum number of waiting jobs, not counting those with a woken slot.
  var limit: Int
  /// The maximum memory of all expensive jobs together, in bytes. One of them may have more.
  let memory: Int
  /// The maximum number of jobs at a time, not counting expensive and background ones: the cores
  /// that workers have. At least 1.
  private(set) var width: Int
  private(set) var slots: [Slot]
  private(set) var waiting: JobQueue<Job>
  private(set) var running: [UInt64: Running] = [:]
  /// Jobs that run only while slots are idle, one at a time. They do not count as waiting.
  private(set) var background = Deque<(id: UInt64, job: Job)>()
  /// Jobs that overtook a waiting expensive job since the last expensive one was taken.
  private var passed = 0
  /// The most estimated memory of expensive jobs at one time, in bytes.
  private(set) var peakOfLong = 0
  /// How often an expensive job had to wait for memory.
  private(set) var waitsForMemory = 0
  /// Slots that wait to be woken. The last one worked last, so its memory is warm.
  private(set) var idle: [Int] = []
  /// The number of slots that run.
  private(set) var staffed = 0
  /// The slot that must run its job alone, because the job ran out of memory beside others.
  private(set) var alone: Int?
  private var pace = QueuePace()
  /// When the pool must have stopped; `nil` while it runs.
  private(set) var stopAt: ContinuousClock.Instant?

  /// Creates a state with `count` slots, none of which runs yet.
  init(slots count: Int, limit: Int, memory: Int = .max) {
    self.limit = limit
    self.memory = memory
    width = count
    // A quarter, as of downloads.
    waiting = JobQueue(share: count / 4)
    slots = Array(repeating: Slot(), count: count)
  }

  var waitingCount: Int { waiting.count }
  var runningCount: Int { running.count }
  /// The number of slots whose workers have a job.
  var busyCount: Int { slots.reduce(0) { $0 + ($1.isBusy ? 1 : 0) } }

  /// Adds a job. A full queue refuses it regardless of its priority, because queued jobs keep their
  /// places.
  ///
  /// - Parameters:
  ///   - clients: whom the job works for; without any, the background. If all have a share, it
  ///     counts as that of the one with the fewest waiting jobs.
  ///   - isExpensive: whether the job is known to be expensive. Its memory is not known.
  mutating func submit(
    _ id: UInt64, job: Job, clients: [LoadClient] = [.unlimited], priority: LoadPriority,
    isExpensive: Bool = false
  ) -> Admission {
    guard stopAt == nil, staffed > 0 else { return .refused(.draining) }
    if let fault = commonFault { return .refused(.internal(detail: fault)) }
    // A slot is idle only if no job waits that may run, or if other slots have been woken for
    // those.
    if !isExpensive, hasWidth, let slot = idle.popLast() {
      waiting.append(id, job: job, clients: clients, turn: .next)
      return .next(wake: slot)
    }
    // Jobs with a woken slot do not count against the limit.
    guard waiting.count - waiting.count(of: .next) < limit else {
      let seconds = pace.seconds(forWaiting: waiting.count, width: width)
      return .refused(.overloaded(queue: "imaging", retryAfter: seconds))
    }
    let (client, count) = payer(of: clients)
    guard count < limitPerClient else {
      let seconds = pace.seconds(forWaiting: count, width: width)
      return .refused(.rateLimited(by: .imagingQueue, retryAfter: seconds))
    }
    waiting.append(
      id, job: job, clients: [client] + clients.filter { $0 != client },
      turn: isExpensive ? .later : .by(priority))
    return isExpensive ? slotForWaiting().map { .next(wake: $0) } ?? .waits : .waits
  }

  /// The maximum number of jobs of one client that wait: a quarter of all.
  private var limitPerClient: Int { (limit + 3) / 4 }

  /// Returns the client that a job counts as, and how many of its jobs wait; 0 for a client without
  /// a share.
  private func payer(of clients: [LoadClient]) -> (client: LoadClient, count: Int) {
    let counts = clients.map { client in
      if case .network = client { return (client: client, count: waiting.count(of: client)) }
      return (client, 0)
    }
    return counts.min { $0.count < $1.count } ?? (.background, 0)
  }

  /// Adds a client that a queued job works for.
  mutating func join(_ id: UInt64, client: LoadClient) { waiting.join(id, client: client) }

  /// Raises the priority of a queued job. Never lowers it.
  mutating func raise(_ id: UInt64, to priority: LoadPriority) {
    waiting.raise(id, to: .by(priority))
  }

  /// Sets the number of jobs at a time, without expensive ones. Returns the slots to wake.
  mutating func setWidth(_ count: Int) -> [Int] {
    width = min(max(count, 1), slots.count)
    // A slot that was woken for a job waits again if the number fell before it took the job.
    guard mayTakeQuick, waiting.count > 0 else { return [] }
    defer { idle = [] }
    return idle
  }

  /// Whether a job may run that is not expensive, besides those with a woken slot.
  private var hasWidth: Bool {
    // The usual case, without counting
    guard width < slots.count else { return true }
    return runningQuick + waiting.count(of: .next) < width
  }

  /// Whether a slot may take a job that is not expensive.
  private var mayTakeQuick: Bool { width == slots.count || runningQuick < width }

  /// The number of running jobs that are not known to be expensive. A background job takes no
  /// other's place.
  private var runningQuick: Int {
    running.values.reduce(0) { $0 + ($1.bytes == nil && !$1.isBackground ? 1 : 0) }
  }

  /// Records that a slot runs.
  mutating func enter() { staffed += 1 }

  /// Returns the next action of a slot. `isReady` tells whether the slot has a ready worker.
  mutating func next(slot: Int, isReady: Bool, now: ContinuousClock.Instant) -> Next {
    idle.removeAll { $0 == slot }
    if let stopAt, now >= stopAt || waiting.count == 0 { return .leave }
    // The worker died while the slot was woken. Only this slot knows of the job, so it wakes
    // another one.
    guard isReady else { return .wait(wake: waiting.count > 0 ? idle.popLast() : nil) }
    // `releaseRoom` wakes all slots.
    guard alone == nil else { return .wait(wake: nil) }
    guard let taken = takeFirst() else {
      if let (id, job) = takeBackground() {
        running[id] = Running(slot: slot, job: job, isBackground: true)
        return .job(id, job)
      }
      idle.append(slot)
      return .wait(wake: nil)
    }
    running[taken.id] = Running(
      slot: slot, job: taken.job, client: taken.client, bytes: taken.bytes)
    peakOfLong = max(peakOfLong, bytesOfLong)
    return .job(taken.id, taken.job)
  }

  private mutating func takeFirst() -> JobQueue<Job>.Taken? {
    let mayTakeLong = waiting.bytesOfFirstLater.map { hasRoom(forLong: $0) } ?? false
    let mayTakeQuick = mayTakeQuick
    let isTurn = mayTakeLong && (passed >= Self.maximumPassed || !mayTakeQuick)
    let first = isTurn ? waiting.popLater() : nil
    let taken = first ?? (mayTakeQuick ? waiting.popFirst(laterToo: mayTakeLong) : nil)
    // A slot that may take nothing has overtaken nothing.
    guard taken != nil || mayTakeQuick else { return nil }
    passed = taken != nil && taken?.bytes == nil && waiting.count(of: .later) > 0 ? passed + 1 : 0
    return taken
  }

  /// Whether an expensive job of this memory may run beside the others. Half of the slots are
  /// reserved for other jobs: one of 2 or 3, two of 4, four of 8.
  private func hasRoom(forLong bytes: Int, besides id: UInt64? = nil) -> Bool {
    let others = running.filter { $0.key != id }.values.compactMap(\.bytes)
    guard !others.isEmpty else { return true }
    return others.count < maximumLong && bytes <= memory - others.reduce(0, +)
  }

  /// The threads that a job with a slot may use: one, and one for each core on which no other job
  /// runs or is about to.
  ///
  /// - Parameter cores: The cores that workers have.
  func threads(onCores cores: Int) -> Int {
    let free = min(width, cores) - (running.count - 1) - waiting.count
    return min(max(free, 1), Self.maximumThreads)
  }

  /// The slots that expensive jobs may have.
  var maximumLong: Int { (slots.count + 1) / 2 }

  /// Takes an idle slot that must be woken because a waiting job may run; `nil` if no job may run
  /// or no slot is idle. A large job that ends may leave room for several.
  mutating func slotForWaiting() -> Int? {
    guard alone == nil, !idle.isEmpty else { return nil }
    let quick = waiting.count - waiting.count(of: .next) - waiting.count(of: .later)
    if quick > 0, hasWidth { return idle.popLast() }
    guard let bytes = waiting.bytesOfFirstLater, hasRoom(forLong: bytes) else { return nil }
    return idle.popLast()
  }

  /// The estimated memory of the expensive jobs that run, in bytes.
  var bytesOfLong: Int { running.values.reduce(0) { $0 + ($1.bytes ?? 0) } }

  /// Reports that a slot's job is expensive, or needs more memory than it was admitted with.
  /// Returns whether the slot continues it. Otherwise the job is queued again behind all other
  /// jobs, and the slot has none.
  mutating func takesLong(_ id: UInt64, bytes: Int) -> Bool {
    guard let entry = running[id], let job = entry.job else { return true }
    if waiting.count == 0, hasRoom(forLong: bytes, besides: id) {
      running[id]?.bytes = bytes
      peakOfLong = max(peakOfLong, bytesOfLong)
      return true
    }
    endRun(of: id)
    if entry.isBackground {
      background.append((id, job))
      return false
    }
    if bytesOfLong > 0, bytes > memory - bytesOfLong { waitsForMemory += 1 }
    waiting.append(id, job: job, clients: [entry.client], turn: .later, bytes: bytes)
    return false
  }

  /// The memory that an expensive job with a slot was admitted with, in bytes, 0 if it is unknown;
  /// `nil` for any other job.
  func bytesOfLong(_ id: UInt64) -> Int? { running[id]?.bytes }

  /// Removes and returns the matching queued jobs, whose callers must be answered.
  mutating func removeWaiting(where isSelected: (Job) -> Bool) -> [Job] {
    waiting.removeAll(where: isSelected)
  }

  /// Returns the orders for the slot that has this job.
  func orders(for id: UInt64) -> Orders {
    Orders(
      isAbandoned: running[id].map { $0.job == nil } ?? true, givesWay: overrunInTheWay?.id == id,
      stopAt: stopAt)
  }

  /// Requests that a slot runs its job alone. Returns whether it may start now. If not, the slot
  /// asks again at each signal, and no other slot gets a job meanwhile.
  mutating func claimRoom(slot: Int) -> Bool {
    guard alone ?? slot == slot else { return false }
    alone = slot
    return running.values.allSatisfy { $0.slot == slot }
  }

  /// Ends a request of `claimRoom`. If this returns `true`, the caller must wake every slot.
  mutating func releaseRoom(slot: Int) -> Bool {
    guard alone == slot else { return false }
    alone = nil
    return true
  }

  /// Ends a job. Returns the job unless its caller was answered before.
  ///
  /// - Parameter duration: how long it took; `nil` if that says nothing about others.
  mutating func finish(_ id: UInt64, took duration: Duration? = nil) -> Job? {
    if let duration, running[id]?.isBackground != true { pace.record(duration) }
    return endRun(of: id)?.job
  }

  /// Takes the slot from a job.
  @discardableResult mutating func endRun(of id: UInt64) -> Running? {
    guard let run = running.removeValue(forKey: id) else { return nil }
    if !run.isBackground { waiting.end(run.client) }
    return run
  }

  /// Cancels a job. Returns the job and the slot to wake if a slot has it; `nil` if the caller was
  /// answered before.
  mutating func cancel(_ id: UInt64) -> (job: Job, wake: Int?)? {
    if let job = waiting.remove(id) { return (job, nil) }
    if let job = background.first(where: { $0.id == id })?.job {
      background.removeAll { $0.id == id }
      return (job, nil)
    }
    guard let entry = running[id], let job = entry.job else { return nil }
    running[id]?.job = nil
    return (job, entry.slot)
  }

  /// Changes the state of a slot. If now no slot has a worker or can start one, returns all queued
  /// jobs and the error for their callers.
  mutating func update(
    slot: Int, _ change: (inout Slot) -> Void
  ) -> (jobs: [Job], reason: ImageError)? {
    change(&slots[slot])
    if slots[slot].pid == nil { idle.removeAll { $0 == slot } }
    guard let commonFault, waiting.count + background.count > 0 else { return nil }
    return (waiting.removeAll() + removeBackground(), .internal(detail: commonFault))
  }

  /// Stops the pool. New jobs are refused, and jobs that have not ended at `instant` fail. The
  /// caller must wake every slot. The earliest instant of several calls counts.
  mutating func stop(at instant: ContinuousClock.Instant) {
    stopAt = min(stopAt ?? instant, instant)
  }

  /// Ends a slot, after which the caller must wake the others: those that waited for memory may
  /// have nothing left to wait for. The last one returns the queued jobs, which can no longer run.
  mutating func leave(slot: Int) -> [Job] {
    idle.removeAll { $0 == slot }
    slots[slot] = Slot()
    staffed -= 1
    return staffed == 0 ? waiting.removeAll() + removeBackground() : []
  }

  /// The fault of the first slot if all slots have a fault.
  var commonFault: String? {
    slots.allSatisfy { $0.fault != nil } ? slots.first?.fault : nil
  }

  // MARK: Background jobs

  /// The maximum number of background jobs that wait.
  private static var maximumBackground: Int { 16 }

  /// Adds a job that runs alone of its kind, while half of the slots are idle and no other job
  /// waits.
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

  /// The background job that is to be cancelled, because another job waits for a slot or for its
  /// memory.
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

  // MARK: Overruns

  /// Reports that a job which began as a quick one takes long. From now on it counts as an
  /// expensive one.
  mutating func overran(_ id: UInt64) {
    guard let entry = running[id], !entry.isBackground, entry.bytes == nil else { return }
    running[id]?.bytes = 0
    running[id]?.hasOverrun = true
  }

  /// The job that gives its slot back, because expensive jobs have more than half of the slots and
  /// another job waits. Of several it is the one that arrived last. `nil` if no job has to.
  var overrunInTheWay: (id: UInt64, slot: Int)? {
    let quick = waiting.count - waiting.count(of: .next) - waiting.count(of: .later)
    guard quick > 0, idle.isEmpty, alone == nil else { return nil }
    let long = running.filter { $0.value.bytes != nil }
    guard long.count > maximumLong else { return nil }
    return long.filter { $0.value.hasOverrun && $0.value.job != nil }.max { $0.key < $1.key }
      .map { ($0.key, $0.value.slot) }
  }

  /// Queues a job with a slot again, behind all others, as an expensive one. The slot has no job
  /// then.
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
