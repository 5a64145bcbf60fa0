// PrefetchJobTable: what a prefetcher holds: its lists, what is under way, and who watches. Guarded by the prefetcher's lock.

import Model
import Telemetry

/// Lists that run and the last of those that ended. What is to be done outside of the lock (cancel tasks, tell
/// observers) is returned.
struct PrefetchJobTable {
  typealias Number = PrefetchSchedule.ListID
  typealias Observer = @Sendable (PrefetchStatus) -> Void

  /// A list with those who watch it.
  private struct Watched {
    let number: Number
    var list: PrefetchJob
    /// When it ended, counted as lists are.
    var ended: Number?
    var observers: [Int: Observer] = [:]
    /// Steps in their order, of which the first `told` are no news any more.
    var steps: [PrefetchStatus] = []
    var told = 0
    /// Whether somebody is telling them: one at a time does, which keeps the order.
    var isTelling = false
    /// Whether nothing more will come of it.
    var isOver: Bool { ended != nil && steps.isEmpty && !isTelling }
  }

  /// A line on its way.
  private struct Running {
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  private let configuration: PrefetcherConfiguration
  private var schedule: PrefetchSchedule
  /// First begun first.
  private var lists: [Watched] = []
  private var running: [PrefetchSchedule.Turn: Running] = [:]
  private var lastNumber = 0
  private var isShutDown = false
  private var totals = PrefetchFigures()

  init(_ configuration: PrefetcherConfiguration) {
    self.configuration = configuration
    schedule = PrefetchSchedule(
      limit: configuration.limit, limitPerHost: configuration.limitPerHost)
    totals.limit = configuration.limit
  }

  /// What is to be done, and what was.
  var figures: PrefetchFigures {
    var figures = totals
    figures.lists = runningLists
    (figures.waiting, figures.running) = (schedule.waiting, schedule.running)
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
  /// Takes in a list; `hosts` are its own.
  mutating func add(
    _ list: PrefetchJob, hosts: [String?], at now: ContinuousClock.Instant
  ) throws(ImageError) {
    guard !isShutDown else { throw .draining }
    guard !list.isRunning || runningLists < configuration.lists else {
      throw .overloaded(queue: "prefetch", retryAfter: 10)
    }
    var watched = Watched(number: nextNumber(), list: list)
    let status = watched.list.status(at: now)
    totals.skipped += status.skipped
    totals.failed += status.failed
    lists.append(watched)
    if list.isRunning {
      schedule.add(watched.number, hosts: hosts)
    } else {
      noteEnd(lists.count - 1)
    }
  }

  /// The next line to begin with, whose end is to be told to `settle`; `nil` where there is none, or no place.
  mutating func next() -> (turn: PrefetchSchedule.Turn, wanted: PrefetchJob.Wanted)? {
    // What the schedule gives is of a list that runs, and is given once, so both are there.
    guard let turn = schedule.next(), let index = index(of: turn.list),
      let wanted = lists[index].list.take(turn.line)
    else { return nil }
    running[turn] = Running()
    return (turn, wanted)
  }

  /// Keeps the handle of a line's task; tells whether it is to be cancelled already.
  mutating func keep(_ task: Task<Void, Never>, for turn: PrefetchSchedule.Turn) -> Bool {
    // Without an entry the task has ended before its handle could be kept.
    guard running[turn] != nil else { return false }
    running[turn]?.task = task
    return running[turn]?.isCancelled ?? false
  }

  /// A line has ended.
  mutating func settle(
    _ turn: PrefetchSchedule.Turn, line: Int, _ outcome: PrefetchOutcome,
    at now: ContinuousClock.Instant
  ) {
    running[turn] = nil
    schedule.finish(turn)
    guard let index = index(of: turn.list), lists[index].list.isRunning else { return }
    switch outcome {
    case .finished: totals.finished += 1
    case .skipped: totals.skipped += 1
    case .failed: totals.failed += 1
    }
    lists[index].list.settle(line, outcome, at: now)
    noteStep(index, at: now)
  }

  /// Ends a list: its number and the tasks to cancel; `nil` where none of this name runs.
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

  /// Ends all lists, before another of them can begin with a line, and takes no more; what `cancel` returns of each.
  mutating func shutDown(
    at now: ContinuousClock.Instant
  ) -> [(number: Number, tasks: [Task<Void, Never>])] {
    isShutDown = true
    return lists.map(\.list.id).compactMap { cancel($0, at: now) }
  }

  /// A list has come a step further.
  private mutating func noteStep(_ index: Int, at now: ContinuousClock.Instant) {
    if !lists[index].observers.isEmpty {
      let status = lists[index].list.status(at: now)
      lists[index].steps.append(status)
    }
    if !lists[index].list.isRunning { noteEnd(index) }
  }

  /// A list has ended: the one that ended longest ago may have to go for it.
  private mutating func noteEnd(_ index: Int) {
    lists[index].ended = nextNumber()
    guard lists.count(where: { $0.ended != nil }) > configuration.endedLists,
      let oldest = lists.filter(\.isOver).min(by: { $0.ended ?? 0 < $1.ended ?? 0 })
    else { return }
    lists.removeAll { $0.number == oldest.number }
  }
}

// MARK: - Watching

extension PrefetchJobTable {
  /// How far each is.
  mutating func statuses(at now: ContinuousClock.Instant) -> [PrefetchStatus] {
    lists.indices.map { lists[$0].list.status(at: now) }
  }

  /// How far one is.
  mutating func status(_ id: String, at now: ContinuousClock.Instant) -> PrefetchStatus? {
    index(of: id).map { lists[$0].list.status(at: now) }
  }

  /// What became of somebody's wish to watch.
  enum Watching {
    /// There is no such list.
    case unknown
    /// It has ended, so.
    case ended(PrefetchStatus)
    /// It runs; list and observer have these numbers.
    case running(Number, observer: Int)
  }

  /// Has an observer told of each further step.
  mutating func observe(
    _ id: String, _ observer: @escaping Observer, at now: ContinuousClock.Instant
  ) -> Watching {
    guard let index = index(of: id) else { return .unknown }
    guard lists[index].list.isRunning else { return .ended(lists[index].list.status(at: now)) }
    let key = nextNumber()
    lists[index].observers[key] = observer
    return .running(lists[index].number, observer: key)
  }

  /// Lets go of an observer, which is returned to be released outside of the lock: that may lead back here.
  mutating func forget(_ observer: Int, of number: Number) -> Observer? {
    index(of: number).flatMap { lists[$0].observers.removeValue(forKey: observer) }
  }

  /// Whether the caller is to tell a list's steps now; it then asks for them until there is none.
  mutating func beginTelling(_ number: Number) -> Bool {
    guard let index = index(of: number), !lists[index].isTelling else { return false }
    lists[index].isTelling = true
    return true
  }

  /// The next step to tell, and whom; `nil` where there is none any more, and the telling has ended.
  mutating func nextStep(of number: Number) -> (status: PrefetchStatus, observers: [Observer])? {
    guard let index = index(of: number) else { return nil }
    let told = lists[index].told
    guard told < lists[index].steps.count else {
      lists[index].isTelling = false
      return nil
    }
    let status = lists[index].steps[told]
    let observers = lists[index].observers
    if told + 1 < lists[index].steps.count {
      lists[index].told += 1
    } else {
      (lists[index].steps, lists[index].told) = ([], 0)
      // There is nothing after the end. They are released by the caller, outside of the lock, like those forgotten.
      if status.state != .running { lists[index].observers = [:] }
    }
    return (status, Array(observers.values))
  }
}
