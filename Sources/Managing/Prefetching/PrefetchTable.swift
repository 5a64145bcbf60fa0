// PrefetchTable: the lists of a prefetcher, which line runs next, and who observes.

import Core

/// Running lists and the most recent ended ones. A pure state machine, guarded by the prefetcher's
/// lock. The caller cancels tasks and calls observers outside of the lock.
///
/// A free slot goes to the least recently served list that has a ready line, and there to the least
/// recently served host below its limit. A list or host that is skipped because of the host limit
/// keeps its place in the order, so no list starves.
struct PrefetchTable {
  typealias Observer = @Sendable (PrefetchStatus) -> Void

  /// A running line. It holds a slot, and one of its host's, until `settle`.
  struct Turn: Sendable {
    let list: Int
    let line: PrefetchList.Line
  }

  private struct Entry {
    let number: Int
    var list: PrefetchList
    /// When the list was last served; for an ended one, when it ended.
    var order: Int
    /// The tasks of running lines, by line. A task is missing until it is kept.
    var tasks: [Int: Task<Void, Never>?] = [:]
    var observers: [Int: Observer] = [:]
    /// Progress steps that observers have not received, in order.
    var steps = Deque<PrefetchStatus>()
    /// Whether a thread is notifying observers. Only one does at a time, which keeps the order.
    var isTelling = false
    /// Whether the list has ended and all observers know.
    var isOver: Bool { !list.isRunning && steps.isEmpty && !isTelling }
  }

  /// The limits. Lists and lines beyond new ones stay.
  var settings: PrefetchSettings
  /// The number of ended lists whose status stays available.
  private let endedLists: Int
  /// In order of arrival.
  private var entries: [Entry] = []
  private var running: [String?: Int] = [:]
  private var last = 0
  private var isShutDown = false
  /// Images since the start, by result.
  private var finished = 0, skipped = 0, failed = 0

  init(_ settings: PrefetchSettings, endedLists: Int) {
    self.settings = settings
    self.endedLists = endedLists
  }

  private var runningLists: Int { entries.count(where: \.list.isRunning) }

  /// The current state, and counts since the start.
  var figures: Figures {
    var figures = Figures()
    figures.add(
      "lists", runningLists, "pictor_prefetch_lists",
      "Running prefetch lists.")
    figures.add(
      "waiting", entries.reduce(0) { $0 + $1.list.waiting }, "pictor_prefetch_images_waiting",
      "Images that wait for their prefetch.")
    figures.add(
      "running", running.values.reduce(0, +), "pictor_prefetch_images_running",
      "Images being prefetched.")
    figures.add(
      "limit", settings.limit, "pictor_prefetch_images_limit",
      "The most images prefetched at once.")
    let images = "pictor_prefetch_images_total"
    let help = "Prefetched images, by result."
    figures.add("finished", finished, images, help, ["result": "finished"])
    figures.add("skipped", skipped, images, help, ["result": "skipped"])
    figures.add("failed", failed, images, help, ["result": "failed"])
    return figures
  }

  private func index(of number: Int) -> Int? { entries.firstIndex { $0.number == number } }

  private func index(of id: String) -> Int? { entries.firstIndex { $0.list.id == id } }

  private mutating func next() -> Int {
    last += 1
    return last
  }

  // MARK: Work

  /// Adds a list and returns its number.
  ///
  /// - Throws: `overloaded` if too many lists run, `draining` after `shutDown`.
  mutating func add(
    _ list: PrefetchList, at now: ContinuousClock.Instant
  ) throws(ImageError) -> Int {
    guard !isShutDown else { throw .draining }
    guard !list.isRunning || runningLists < settings.lists else {
      throw .overloaded(queue: "prefetch", retryAfter: 10)
    }
    var list = list
    let status = list.status(at: now)
    skipped += status.skipped
    failed += status.failed
    let number = next()
    entries.append(Entry(number: number, list: list, order: number))
    if !list.isRunning { forgetOldest() }
    return number
  }

  /// Returns the next line to start and takes a slot for it, or `nil` if no line is ready or no
  /// slot is free. The caller passes its outcome to `settle`.
  mutating func take() -> Turn? {
    guard running.values.reduce(0, +) < settings.limit else { return nil }
    let (running, limit) = (running, settings.limitPerHost)
    for index in entries.indices.sorted(by: { entries[$0].order < entries[$1].order }) {
      guard
        let line = entries[index].list.take(sparing: { running[$0, default: 0] >= limit })
      else { continue }
      entries[index].order = next()
      entries[index].tasks[line.number] = .some(nil)
      self.running[line.host, default: 0] += 1
      return Turn(list: entries[index].number, line: line)
    }
    return nil
  }

  /// Keeps the task of a line. Returns whether the caller must cancel the task, because its list
  /// was cancelled.
  mutating func keep(_ task: Task<Void, Never>, for turn: Turn) -> Bool {
    guard let index = index(of: turn.list), entries[index].list.isRunning else { return true }
    // The task may have ended before this call.
    if entries[index].tasks[turn.line.number] != nil {
      entries[index].tasks[turn.line.number] = task
    }
    return false
  }

  /// Records the outcome of a line and frees its slot.
  mutating func settle(_ turn: Turn, as outcome: PrefetchOutcome, at now: ContinuousClock.Instant) {
    let host = turn.line.host
    if let count = running[host] { running[host] = count > 1 ? count - 1 : nil }
    guard let index = index(of: turn.list) else { return }
    entries[index].tasks[turn.line.number] = nil
    guard entries[index].list.isRunning else { return }
    switch outcome {
    case .finished: finished += 1
    case .skipped: skipped += 1
    case .failed: failed += 1
    }
    entries[index].list.settle(turn.line.number, as: outcome, at: now)
    noteStep(index, at: now)
  }

  /// Cancels a list. Returns its number and the tasks to cancel, or `nil` if no such list runs.
  mutating func cancel(
    _ id: String, at now: ContinuousClock.Instant
  ) -> (number: Int, tasks: [Task<Void, Never>])? {
    guard let index = index(of: id), entries[index].list.isRunning else { return nil }
    let number = entries[index].number
    let tasks = entries[index].tasks.values.compactMap { $0 }
    entries[index].list.cancel(at: now)
    noteStep(index, at: now)
    return (number, tasks)
  }

  /// Cancels all lists and rejects new ones. Returns the result of `cancel` for each.
  mutating func shutDown(
    at now: ContinuousClock.Instant
  ) -> [(number: Int, tasks: [Task<Void, Never>])] {
    isShutDown = true
    return entries.map(\.list.id).compactMap { cancel($0, at: now) }
  }

  /// Records a progress step of a list.
  private mutating func noteStep(_ index: Int, at now: ContinuousClock.Instant) {
    if !entries[index].observers.isEmpty {
      entries[index].steps.append(entries[index].list.status(at: now))
    }
    guard !entries[index].list.isRunning else { return }
    entries[index].order = next()
    forgetOldest()
  }

  /// Forgets the list that ended first, if too many have ended.
  private mutating func forgetOldest() {
    guard entries.count(where: { !$0.list.isRunning }) > endedLists,
      let oldest = entries.filter(\.isOver).min(by: { $0.order < $1.order })
    else { return }
    entries.removeAll { $0.number == oldest.number }
  }

  // MARK: Observing

  /// Returns the progress of all lists, in order of arrival.
  mutating func statuses(at now: ContinuousClock.Instant) -> [PrefetchStatus] {
    entries.indices.map { entries[$0].list.status(at: now) }
  }

  /// Returns the progress of one list.
  mutating func status(_ id: String, at now: ContinuousClock.Instant) -> PrefetchStatus? {
    index(of: id).map { entries[$0].list.status(at: now) }
  }

  /// Adds an observer of further steps. Returns the numbers of list and observer, or `nil` if no
  /// such list runs.
  mutating func observe(_ id: String, _ observer: @escaping Observer) -> (list: Int, observer: Int)?
  {
    guard let index = index(of: id), entries[index].list.isRunning else { return nil }
    let key = next()
    entries[index].observers[key] = observer
    return (entries[index].number, key)
  }

  /// Removes an observer and returns it. The caller releases it outside of the lock, because its
  /// `deinit` may call this table.
  mutating func forget(_ observer: Int, of number: Int) -> Observer? {
    index(of: number).flatMap { entries[$0].observers.removeValue(forKey: observer) }
  }

  /// Returns the next step of a list and its observers, which the caller calls; `nil` if no step is
  /// left, or another thread calls them.
  ///
  /// - Parameter continues: whether the caller has called the observers of the step before.
  mutating func nextStep(
    of number: Int, continues: Bool
  ) -> (status: PrefetchStatus, observers: [Observer])? {
    guard let index = index(of: number), continues || !entries[index].isTelling else { return nil }
    let status = entries[index].steps.popFirst()
    entries[index].isTelling = status != nil
    guard let status else { return nil }
    let observers = entries[index].observers
    // No step follows the end. The caller releases the observers outside of the lock.
    if status.state != .running, entries[index].steps.isEmpty { entries[index].observers = [:] }
    return (status, Array(observers.values))
  }
}

/// The outcome of one line of a prefetch list.
enum PrefetchOutcome: Hashable, Sendable {
  /// The image was downloaded or rendered.
  case finished
  /// The image was cached and fresh.
  case skipped
  case failed(ImageError)
}

/// One prefetch list. A pure state machine: the caller passes the time.
struct PrefetchList {
  struct Line: Sendable {
    /// The line number in the submitted list, from 1.
    let number: Int
    let request: ImageRequest

    /// The source host; `nil` for a local file, which has no host limit.
    var host: String? { request.source.scheme == .local ? nil : request.source.host }
  }

  private struct Host {
    let name: String?
    var lines: Deque<Line>
  }

  /// The maximum number of failures listed individually. `reasons` counts them all.
  static let failuresTold = 100

  /// Waiting lines by host. The least recently served host comes first.
  private var hosts = Deque<Host>()
  private(set) var waiting = 0
  private var status: PrefetchStatus
  private var rate = PrefetchRate()
  /// The number of lines that needed no work: invalid and repeated ones.
  private var settledAtOnce = 0
  private let began: ContinuousClock.Instant

  /// Sorts the lines by host. Invalid lines fail at once and repeated lines are skipped. All lines
  /// get low priority and are not detached. O(n) in the number of lines.
  init(id: String, lines: [PrefetchLine], at now: ContinuousClock.Instant) {
    status = PrefetchStatus(id: id, total: lines.count)
    began = now
    var seen: Set<FlightKey> = []
    var indices: [String?: Int] = [:]
    for line in lines {
      switch line.request {
      case .success(var request):
        request.options.priority = .low
        // Detached work would outlive a cancelled list.
        request.options.isDetached = false
        guard seen.insert(FlightKey(request)).inserted else {
          count(.skipped, line: line.number)
          continue
        }
        let line = Line(number: line.number, request: request)
        waiting += 1
        if let index = indices[line.host] {
          hosts[index].lines.append(line)
        } else {
          indices[line.host] = hosts.count
          var host = Host(name: line.host, lines: Deque())
          host.lines.append(line)
          hosts.append(host)
        }
      case .failure(let error): count(.failed(error), line: line.number)
      }
    }
    settledAtOnce = status.done
    endIfDone(at: now)
  }

  var id: String { status.id }
  var isRunning: Bool { status.state == .running }

  /// Returns the next line of the least recently served host that is not full, and removes it.
  mutating func take(sparing isFull: (String) -> Bool) -> Line? {
    let position = hosts.firstIndex { host in host.name.map { !isFull($0) } ?? true }
    guard let position else { return nil }
    var host = hosts.remove(at: position)
    let line = host.lines.popFirst()
    if !host.lines.isEmpty { hosts.append(host) }
    waiting -= 1
    return line
  }

  /// Records the outcome of a line. Does nothing after the list has ended.
  mutating func settle(
    _ line: Int, as outcome: PrefetchOutcome, at now: ContinuousClock.Instant
  ) {
    guard isRunning else { return }
    count(outcome, line: line)
    rate.add(at: now - began)
    endIfDone(at: now)
  }

  mutating func cancel(at now: ContinuousClock.Instant) {
    if isRunning { end(.cancelled, at: now) }
  }

  /// Returns the progress. The rate counts lines that needed work: over the last ten seconds, or
  /// over the whole run after the list has ended.
  mutating func status(at now: ContinuousClock.Instant) -> PrefetchStatus {
    guard isRunning else { return status }
    var status = status
    let elapsed = now - began
    status.seconds = elapsed.inSeconds
    status.rate = rate.value(at: elapsed)
    if status.rate > 0 { status.secondsLeft = Double(status.total - status.done) / status.rate }
    return status
  }

  private mutating func count(_ outcome: PrefetchOutcome, line: Int) {
    switch outcome {
    case .finished: status.finished += 1
    case .skipped: status.skipped += 1
    case .failed(let error):
      status.failed += 1
      status.reasons[error.code, default: 0] += 1
      if status.failures.count < Self.failuresTold {
        status.failures.append(
          PrefetchStatus.Failure(line: line, code: error.code, message: error.message))
      }
    }
  }

  private mutating func endIfDone(at now: ContinuousClock.Instant) {
    if status.done == status.total { end(.finished, at: now) }
  }

  private mutating func end(_ state: PrefetchStatus.State, at now: ContinuousClock.Instant) {
    status.state = state
    status.seconds = (now - began).inSeconds
    status.secondsLeft = 0
    let worked = status.done - settledAtOnce
    status.rate = worked > 0 && status.seconds > 0 ? Double(worked) / status.seconds : 0
    hosts = Deque()
    waiting = 0
  }
}

/// A rate over a sliding window of ten seconds, which predicts the remaining time better than the
/// overall rate. Pure: the caller passes the time since the start.
struct PrefetchRate {
  private static let window = 10
  /// Counts by second, at the second's number modulo `window`.
  private var counts = [Int](repeating: 0, count: window)
  private var second = 0

  mutating func add(at elapsed: Duration) {
    advance(to: elapsed)
    counts[second % Self.window] += 1
  }

  /// Returns lines per second. During the first second, the count itself.
  mutating func value(at elapsed: Duration) -> Double {
    advance(to: elapsed)
    let start = Double(max(second - Self.window + 1, 0))
    return Double(counts.reduce(0, +)) / max(elapsed.inSeconds - start, 1)
  }

  private mutating func advance(to elapsed: Duration) {
    let now = max(Int(elapsed.components.seconds), second)
    for passed in (second..<now).suffix(Self.window) { counts[(passed + 1) % Self.window] = 0 }
    second = now
  }
}
