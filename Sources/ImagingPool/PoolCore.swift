// PoolCore: the state shared by the pool's callers and its slots.

import Core
import Glibc
import Synchronization

/// The scheduler under its lock, the wake signals of the slots, and the counters. Callers are
/// resumed outside the lock.
final class PoolCore: Sendable {
  let current: Lock<ImagerPoolConfiguration>
  var configuration: ImagerPoolConfiguration { current.withLock { $0 } }
  let storage: VariantStorage
  let log: Log
  let counters = PoolCounters()
  /// The cores that workers leave to event loops; `nil` if they have all.
  let reserve: CoreReserve?

  private let seal = Lock<SandboxReport?>(nil)
  let costly = Lock(CostlySources())
  /// The faces of sources, so that further sizes of one need no search. The oldest is forgotten.
  private let faces = Lock(BoundedTable<SourceIdentity, [PixelArea]>(limit: 8_192))
  let board: Lock<JobScheduler<PendingJob>>
  private let signals: [WakeSignal]
  private let ids = Atomic<UInt64>(0)
  private let startSignal: WakeSignal
  private let startOutcome = Lock<Result<Void, ImagerStartError>?>(nil)
  private let endWaiters = Lock<[CheckedContinuation<Void, Never>]>([])

  init(
    _ configuration: ImagerPoolConfiguration, storage: VariantStorage, reserve: CoreReserve?,
    log: Log
  ) throws(SystemError) {
    self.storage = storage
    self.reserve = reserve
    current = Lock(configuration)
    self.log = log
    let count = max(configuration.workers, 1)
    board = Lock(
      JobScheduler(
        slots: count, limit: max(configuration.queueLimit, 0),
        memory: configuration.expensiveJobMemory))
    var signals: [WakeSignal] = []
    for _ in 0..<count { signals.append(try WakeSignal()) }
    self.signals = signals
    startSignal = try WakeSignal()
  }

  // MARK: Callers

  func nextID() -> UInt64 { ids.wrappingAdd(1, ordering: .relaxed).newValue }

  func submit(_ id: UInt64, job: PendingJob) {
    if job.job.isBackground { return submitBackground(id, job: job) }
    let priority = job.job.priority
    let isCostly = isCostly(job.job.source)
    let clients = clients(of: job, id: id)
    switch board.withLock({
      $0.submit(
        id, job: job, clients: clients, priority: priority == nil ? .normal : .low,
        isExpensive: isCostly)
    }) {
    case .next(let slot): wake(slot)
    case .waits:
      let (other, overrun) = board.withLock { ($0.backgroundInTheWay, $0.overrunInTheWay?.slot) }
      if let other { cancel(other) }
      wake(overrun)
      if let priority { follow(priority, for: id) }
    case .refused(let error): answer(job, with: .failure(error))
    }
  }

  /// Returns whom a job works for. Those that join its flight later count as soon as it waits.
  private func clients(of job: PendingJob, id: UInt64) -> [LoadClient] {
    guard let priority = job.job.priority else { return [job.account?.client ?? .unlimited] }
    return Array(
      priority.observeClients { [self] client in board.withLock { $0.join(id, client: client) } })
  }

  private func submitBackground(_ id: UInt64, job: PendingJob) {
    switch board.withLock({ $0.submitBackground(id, job: job) }) {
    case .next(let slot): wake(slot)
    case .waits: break
    case .refused(let error): answer(job, with: .failure(error))
    }
  }

  /// Applies the job's priority and each later raise.
  ///
  /// - Only queued jobs are observed. A job with a free worker needs no priority.
  /// - The priority is read outside the lock, because raising takes the lock. Until then the job is
  ///   queued as low.
  /// - No raise is lost: `observe` reports each one after the priority that it returns. Their order
  ///   does not matter, because a priority is never lowered.
  /// - A raise of a job that no longer waits has no effect.
  private func follow(_ priority: any WorkPriority, for id: UInt64) {
    // A cycle of references: core, scheduler, job, priority. It ends when the scheduler hands the
    // job back.
    let present = priority.observe { [self] raised in raise(id, to: raised) }
    raise(id, to: present)
  }

  private func raise(_ id: UInt64, to priority: LoadPriority) {
    board.withLock { $0.raise(id, to: priority) }
  }

  func cancel(_ id: UInt64) {
    let (ended, later) = board.withLock { ($0.cancel(id), $0.slotForWaiting()) }
    wake(later)
    guard let (job, slot) = ended else { return }
    counters.cancelled.add()
    wake(slot)
    job.caller.resume(returning: .failure(.cancelled))
  }

  /// Stops the pool at `instant`, or earlier when all jobs are done.
  func stop(at instant: ContinuousClock.Instant) {
    let (background, running) = board.withLock { board in
      board.stop(at: instant)
      return (board.removeBackground(), board.runningBackground)
    }
    for job in background { answer(job, with: .failure(.draining)) }
    if let running { cancel(running) }
    wakeAll()
  }

  /// Waits until every slot has stopped its worker and ended.
  func ended() async {
    await withCheckedContinuation { continuation in
      let isOver = endWaiters.withLock { waiters in
        if board.withLock({ $0.staffed == 0 }) { return true }
        waiters.append(continuation)
        return false
      }
      if isOver { continuation.resume() }
    }
  }

  func read<Value: Sendable>(_ body: (borrowing JobScheduler<PendingJob>) -> Value) -> Value {
    board.withLock { body($0) }
  }

  // MARK: Start

  /// Starts the slots and waits for the first result. If no worker starts, stops all slots.
  func start() throws(ImagerStartError) {
    do throws(ImagerStartError) {
      try startSlots()
    } catch {
      stop(at: .now)
      let deadline = ContinuousClock.now + .seconds(3)
      while read({ $0.staffed > 0 }) && .now < deadline {
        startSignal.reset()
        _ = Poll.wait(for: [startSignal.descriptor], until: min(deadline, .now + .milliseconds(50)))
      }
      throw error
    }
  }

  private func startSlots() throws(ImagerStartError) {
    let path = configuration.executable
    for index in signals.indices {
      let slot = WorkerSlot(index: index, core: self, signal: signals[index])
      board.withLock { $0.enter() }
      do throws(SystemError) {
        try OwnThread.start(name: "imaging-\(index)", rank: .foreground) { slot.run() }
      } catch {
        leave(slot: index)
        throw ImagerStartError(executable: path, reason: "pthread_create: \(errnoText(error.code))")
      }
    }
    let deadline = ContinuousClock.now + configuration.startDeadline + .seconds(1)
    while true {
      switch startOutcome.withLock({ $0 }) {
      case .success: return
      case .failure(let error): throw error
      case nil where ContinuousClock.now >= deadline:
        throw ImagerStartError(executable: path, reason: "it was not ready in time")
      case nil: _ = Poll.wait(for: [startSignal.descriptor], until: deadline)
      }
    }
  }

  /// Reports the result of a slot's start. Only the first one counts.
  func started(_ outcome: Result<Void, ImagerStartError>) {
    startOutcome.withLock { $0 = $0 ?? outcome }
    startSignal.set()
  }

  // MARK: Sandbox

  /// The layers that seal the workers, as the last one to start reports them; `nil` before the
  /// first.
  var sandbox: SandboxReport? { seal.withLock { $0 } }

  /// Records how a new worker is sealed. The first report and each change have a line in the log.
  func sealed(_ report: SandboxReport) {
    guard seal.exchange(report) != report else { return }
    let fields: KeyValuePairs<String, LogValue> = [
      "sandbox": .string(configuration.sandbox.rawValue), "landlock": .int(report.landlock),
      "seccomp": .bool(report.seccomp),
    ]
    if report.isWhole {
      log.info("imaging workers are sealed", fields: fields)
    } else if configuration.sandbox == .off {
      log.warning("imaging workers are not sealed: imaging.sandbox is off", fields: fields)
    } else {
      log.warning("imaging workers are not sealed completely: a layer is missing", fields: fields)
    }
  }

  // MARK: Slots

  func next(slot: Int, isReady: Bool) -> JobScheduler<PendingJob>.Next {
    let now = ContinuousClock.now
    let (next, later) = board.withLock { board in
      let next = board.next(slot: slot, isReady: isReady, now: now)
      if case .job = next { return (next, board.slotForWaiting()) }
      return (next, nil)
    }
    if case .wait(let other) = next { wake(other) }
    wake(later)
    return next
  }

  /// Orders a result's memory before its reader. If a continuation is resumed before it is awaited,
  /// Swift 6.3 hands it over without a release that the thread sanitizer detects. The lock has one.
  func synchronize() { board.withLock { _ in } }

  /// The threads that a job with a slot may use.
  func threads(of job: ImageJob) -> Int {
    // No client waits for a background job.
    guard !job.isBackground else { return 1 }
    let cores = min(reserve?.share().cores.numbers.count ?? .max, Cores.usable)
    return board.withLock { $0.threads(onCores: cores) }
  }

  /// Returns whether a slot continues an expensive job; otherwise the job is queued again.
  func takesLong(_ id: UInt64, bytes: Int) -> Bool {
    let (continues, other, inTheWay) = board.withLock {
      ($0.takesLong(id, bytes: bytes), $0.slotForWaiting(), $0.backgroundInTheWay)
    }
    wake(other)
    if let inTheWay { cancel(inTheWay) }
    return continues
  }

  /// Lets at most this many jobs run at a time, besides expensive ones.
  func setWidth(_ count: Int) {
    for slot in board.withLock({ $0.setWidth(count) }) { wake(slot) }
  }

  var stopAt: ContinuousClock.Instant? { board.withLock { $0.stopAt } }

  func update(slot: Int, _ change: (inout JobScheduler<PendingJob>.Slot) -> Void) {
    guard let (jobs, reason) = board.withLock({ $0.update(slot: slot, change) }) else { return }
    for job in jobs { answer(job, with: .failure(reason)) }
  }

  /// Answers the caller of a job, unless it was answered before.
  func finish(
    _ id: UInt64, with result: Result<ProcessedImage, ImageError>, took duration: Duration
  ) {
    let (job, alone) = board.withLock { ($0.finish(id, took: duration), $0.alone) }
    if let job { answer(job, with: result) }
    if let source = job?.job.source, case .failure(let error) = result, error.isOfSource {
      refuseWaiting(of: source, error)
    }
    wake(alone)
  }

  /// Fails the queued jobs of a faulty source. Each would fail the same way, after as much work.
  private func refuseWaiting(of source: SourceIdentity, _ error: ImageError) {
    let (jobs, later) = board.withLock { board in
      (board.removeWaiting { $0.job.source == source }, board.slotForWaiting())
    }
    wake(later)
    for job in jobs { answer(job, with: .failure(error)) }
  }

  /// Requests that a slot runs alone. Returns whether it may start now.
  func claimRoom(slot: Int) -> Bool { board.withLock { $0.claimRoom(slot: slot) } }

  /// Ends the request of `claimRoom` and wakes the other slots.
  func releaseRoom(slot: Int) {
    guard board.withLock({ $0.releaseRoom(slot: slot) }) else { return }
    wakeAll()
  }

  /// Records that a slot has ended.
  func leave(slot: Int) {
    let (jobs, isLast) = board.withLock { ($0.leave(slot: slot), $0.staffed == 0) }
    for job in jobs { answer(job, with: .failure(.draining)) }
    guard isLast else { return wakeAll() }
    startSignal.set()
    for waiter in endWaiters.exchange([]) { waiter.resume() }
  }

  // MARK: Jobs that take far longer than estimated

  /// Reports that a job which began as a quick one takes long. Its source's other jobs wait as
  /// expensive ones.
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
    guard let source else { return false }
    return costly.withLock { $0.stopped(source, transform, now: .now) }
  }

  /// Returns the faces that a job of the same source has found. Other frames have other faces.
  func faces(of job: ImageJob) -> [PixelArea]? {
    guard let source = job.source, job.transform.selection.frame == nil else { return nil }
    return faces.withLock { $0[source] }
  }

  /// Keeps the faces that a job has found.
  func keep(_ found: [PixelArea], of job: ImageJob) {
    counters.faceSearches.add()
    guard let source = job.source, job.transform.selection.frame == nil else { return }
    faces.withLock { $0.setNewest(found, for: source) }
  }

  // MARK: Answers

  private func answer(_ job: PendingJob, with result: Result<ProcessedImage, ImageError>) {
    switch result {
    case .success: counters.succeeded.add()
    case .failure(let error): counters.failed.add(error.code)
    }
    job.caller.resume(returning: result)
  }

  func wake(_ slot: Int?) {
    if let slot { signals[slot].set() }
  }

  private func wakeAll() {
    for signal in signals { signal.set() }
  }
}
