// PrefetchJobTable: the state of a prefetcher: its lists, running lines and observers.

import Model
import Platform
import Telemetry

/// Running lists and the most recent ended ones, guarded by the prefetcher's lock. Methods return
/// the actions to take outside of the lock: tasks to cancel and observers to call.
struct PrefetchJobTable {
  typealias Number = PrefetchSchedule.ListID
  typealias Observer = @Sendable (PrefetchStatus) -> Void

  /// A list and its observers.
  private struct Watched {
    let number: Number
    var list: PrefetchJob
    /// The sequence number of its end, from the same counter as the list numbers.
    var ended: Number?
    var observers: [Int: Observer] = [:]
    /// Progress steps that observers have not received, in order.
    var steps = Deque<PrefetchStatus>()
    /// Whether a thread is notifying observers. Only one does at a time, which keeps the order.
    var isTelling = false
    /// Whether the list has ended and all observers know.
    var isOver: Bool { ended != nil && steps.isEmpty && !isTelling }
  }

  /// A running line.
  private struct Running {
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  private var configuration: PrefetcherConfiguration
  private var schedule: PrefetchSchedule
  /// In order of arrival.
  private var lists: [Watched] = []
  private var running: [PrefetchSchedule.Turn: Running] = [:]
  private var lastNumber = 0
  private var isShutDown = false
  /// Images since the start, by result.
  private var finished = 0, skipped = 0, failed = 0

  init(_ configuration: PrefetcherConfiguration) {
    self.configuration = configuration
    schedule = PrefetchSchedule(
      limit: configuration.limit, limitPerHost: configuration.limitPerHost)
  }

  /// Replaces the limits. Lists and lines beyond them stay.
  mutating func apply(_ configuration: PrefetcherConfiguration) {
    self.configuration = configuration
    schedule.set(limit: configuration.limit, limitPerHost: configuration.limitPerHost)
  }

  /// The current state, and counts since the start.
  var figures: Figures {
    var figures = Figures()
    figures.add("lists", runningLists, "pictor_prefetch_lists", "Running prefetch lists.")
    figures.add(
      "waiting", schedule.waiting, "pictor_prefetch_images_waiting",
      "Images that wait for their prefetch.")
    figures.add(
      "running", schedule.running, "pictor_prefetch_images_running", "Images being prefetched.")
    figures.add(
      "limit", configuration.limit, "pictor_prefetch_images_limit",
      "The most images prefetched at once.")
    let images = "pictor_prefetch_images_total"
    let help = "Prefetched images, by result."
    figures.add("finished", finished, images, help, ["result": "finished"])
    figures.add("skipped", skipped, images, help, ["result": "skipped"])
    figures.add("failed", failed, images, help, ["result": "failed"])
    return figures
  }

  private var runningLists: Int { lists.count(where: \.list.isRunning) }

  private func index(of id: String) -> Int? { lists.firstIndex { $0.list.id == id } }

  private func index(of number: Number) -> Int? { lists.firstIndex { $0.number == number } }

  private mutating func nextNumber() -> Number {
    lastNumber += 1
    return lastNumber
  }
}

// MARK: - Work

extension PrefetchJobTable {
  /// Adds a list. `hosts` is the list's own property.
  ///
  /// - Throws: `overloaded` if too many lists run, `draining` after `shutDown`.
  mutating func add(
    _ list: PrefetchJob, hosts: [String?], at now: ContinuousClock.Instant
  ) throws(ImageError) {
    guard !isShutDown else { throw .draining }
    guard !list.isRunning || runningLists < configuration.lists else {
      throw .overloaded(queue: "prefetch", retryAfter: 10)
    }
    var watched = Watched(number: nextNumber(), list: list)
    let status = watched.list.status(at: now)
    skipped += status.skipped
    failed += status.failed
    lists.append(watched)
    if list.isRunning {
      schedule.add(watched.number, hosts: hosts)
    } else {
      noteEnd(lists.count - 1)
    }
  }

  /// Returns the next line to start, or `nil` if none is ready or no slot is free. The caller
  /// passes its outcome to `settle`.
  mutating func next() -> (turn: PrefetchSchedule.Turn, wanted: PrefetchJob.Wanted)? {
    // The schedule returns each line of a running list once, so both look-ups succeed.
    guard let turn = schedule.next(), let index = index(of: turn.list),
      let wanted = lists[index].list.take(turn.line)
    else { return nil }
    running[turn] = Running()
    return (turn, wanted)
  }

  /// Keeps the task of a line. Returns whether the caller must cancel the task.
  mutating func keep(_ task: Task<Void, Never>, for turn: PrefetchSchedule.Turn) -> Bool {
    // The task has ended before this call.
    guard running[turn] != nil else { return false }
    running[turn]?.task = task
    return running[turn]?.isCancelled ?? false
  }

  /// Records the outcome of a line.
  mutating func settle(
    _ turn: PrefetchSchedule.Turn, line: Int, as outcome: PrefetchOutcome,
    at now: ContinuousClock.Instant
  ) {
    running[turn] = nil
    schedule.finish(turn)
    guard let index = index(of: turn.list), lists[index].list.isRunning else { return }
    switch outcome {
    case .finished: finished += 1
    case .skipped: skipped += 1
    case .failed: failed += 1
    }
    lists[index].list.settle(line, as: outcome, at: now)
    noteStep(index, at: now)
  }

  /// Cancels a list. Returns its number and the tasks to cancel, or `nil` if no such list runs.
  mutating func cancel(
    _ id: String, at now: ContinuousClock.Instant
  ) -> (number: Number, tasks: [Task<Void, Never>])? {
    guard let index = index(of: id), lists[index].list.isRunning else { return nil }
    let number = lists[index].number
    schedule.remove(number)
    lists[index].list.cancel(at: now)
    var tasks: [Task<Void, Never>] = []
    for (turn, line) in running where turn.list == number {
      if let task = line.task { tasks.append(task) }
      running[turn]?.isCancelled = true
    }
    noteStep(index, at: now)
    return (number, tasks)
  }

  /// Cancels all lists and rejects new ones. Returns the result of `cancel` for each.
  mutating func shutDown(
    at now: ContinuousClock.Instant
  ) -> [(number: Number, tasks: [Task<Void, Never>])] {
    isShutDown = true
    return lists.map(\.list.id).compactMap { cancel($0, at: now) }
  }

  /// Records a progress step of a list.
  private mutating func noteStep(_ index: Int, at now: ContinuousClock.Instant) {
    if !lists[index].observers.isEmpty {
      let status = lists[index].list.status(at: now)
      lists[index].steps.append(status)
    }
    if !lists[index].list.isRunning { noteEnd(index) }
  }

  /// Records the end of a list. May remove the list that ended first.
  private mutating func noteEnd(_ index: Int) {
    lists[index].ended = nextNumber()
    guard lists.count(where: { $0.ended != nil }) > configuration.endedLists,
      let oldest = lists.filter(\.isOver).min(by: { $0.ended ?? 0 < $1.ended ?? 0 })
    else { return }
    lists.removeAll { $0.number == oldest.number }
  }
}

// MARK: - Observing

extension PrefetchJobTable {
  /// Returns the progress of all lists.
  mutating func statuses(at now: ContinuousClock.Instant) -> [PrefetchStatus] {
    lists.indices.map { lists[$0].list.status(at: now) }
  }

  /// Returns the progress of one list.
  mutating func status(_ id: String, at now: ContinuousClock.Instant) -> PrefetchStatus? {
    index(of: id).map { lists[$0].list.status(at: now) }
  }

  /// The result of `observe`.
  enum Watching {
    /// No such list exists.
    case unknown
    /// The list has ended with this status.
    case ended(PrefetchStatus)
    /// The list is running; the values identify the list and the observer.
    case running(Number, observer: Int)
  }

  /// Adds an observer of further steps.
  mutating func observe(
    _ id: String, observer: @escaping Observer, at now: ContinuousClock.Instant
  ) -> Watching {
    guard let index = index(of: id) else { return .unknown }
    guard lists[index].list.isRunning else { return .ended(lists[index].list.status(at: now)) }
    let key = nextNumber()
    lists[index].observers[key] = observer
    return .running(lists[index].number, observer: key)
  }

  /// Removes an observer and returns it. The caller releases it outside of the lock, because its
  /// `deinit` may call this table.
  mutating func forget(_ observer: Int, of number: Number) -> Observer? {
    index(of: number).flatMap { lists[$0].observers.removeValue(forKey: observer) }
  }

  /// Returns whether the caller must notify the observers of a list. The caller then calls
  /// `nextStep` until it returns `nil`.
  mutating func beginTelling(_ number: Number) -> Bool {
    guard let index = index(of: number), !lists[index].isTelling else { return false }
    lists[index].isTelling = true
    return true
  }

  /// Returns the next step and its observers, or `nil` if no step is left. `nil` also ends the
  /// notification that `beginTelling` began.
  mutating func nextStep(of number: Number) -> (status: PrefetchStatus, observers: [Observer])? {
    guard let index = index(of: number) else { return nil }
    guard let status = lists[index].steps.popFirst() else {
      lists[index].isTelling = false
      return nil
    }
    let observers = lists[index].observers
    // No step follows the end. The caller releases the observers outside of the lock.
    if status.state != .running, lists[index].steps.isEmpty { lists[index].observers = [:] }
    return (status, Array(observers.values))
  }
}
