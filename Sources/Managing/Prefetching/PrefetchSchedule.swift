// PrefetchSchedule: decides which line of which list is prefetched next.

import Platform

/// A fair schedule of prefetch lists. A pure state machine.
///
/// A free slot goes to the least recently served list that has a ready line. Within that list, the
/// line goes to the least recently served host below its limit. A list or host that is skipped
/// because of the host limit keeps its place in the order, so no list starves.
struct PrefetchSchedule {
  typealias ListID = Int

  /// A running line. It holds a slot, and one of its host's, until `finish`.
  struct Turn: Hashable, Sendable {
    let list: ListID
    /// The index of the line in its list.
    let line: Int
    /// The source host; `nil` for a local file, which has no host limit.
    let host: String?
  }

  private struct Host {
    let name: String?
    var lines: Deque<Int>
  }

  private struct List {
    let id: ListID
    var hosts: [Host]
    /// Indices of `hosts` that have lines left.
    var order = Deque<Int>()
    var waiting: Int

    /// Returns the next line of the first host that is not in `full`.
    mutating func take(sparing full: Set<String>) -> Turn? {
      let position = order.firstIndex { index in
        hosts[index].name.map { !full.contains($0) } ?? true
      }
      guard let position else { return nil }
      let index = order.remove(at: position)
      guard let line = hosts[index].lines.popFirst() else { return nil }
      waiting -= 1
      if !hosts[index].lines.isEmpty { order.append(index) }
      return Turn(list: id, line: line, host: hosts[index].name)
    }
  }

  private var limit: Int
  private var limitPerHost: Int
  /// The least recently served list comes first.
  private var lists: [List] = []
  private var runningByHost: [String: Int] = [:]
  /// Hosts at their limit.
  private var full: Set<String> = []

  /// The number of running lines.
  private(set) var running = 0

  /// - Parameters:
  ///   - limit: the maximum number of running lines in all lists.
  ///   - limitPerHost: the maximum number of running lines for one host.
  init(limit: Int, limitPerHost: Int) {
    self.limit = limit
    self.limitPerHost = limitPerHost
  }

  /// Changes the limits. Running lines beyond them stay.
  mutating func set(limit: Int, limitPerHost: Int) {
    self.limit = limit
    self.limitPerHost = limitPerHost
    full = Set(runningByHost.filter { $0.value >= limitPerHost }.keys)
  }

  /// The number of waiting lines in all lists.
  var waiting: Int { lists.reduce(0) { $0 + $1.waiting } }

  /// Adds a list at the end of the order. `hosts` contains the host of each line.
  mutating func add(_ id: ListID, hosts: [String?]) {
    var list = List(id: id, hosts: [], waiting: hosts.count)
    var indices: [String?: Int] = [:]
    for (line, name) in hosts.enumerated() {
      if let index = indices[name] {
        list.hosts[index].lines.append(line)
      } else {
        indices[name] = list.hosts.count
        list.order.append(list.hosts.count)
        list.hosts.append(Host(name: name, lines: Deque([line])))
      }
    }
    if !hosts.isEmpty { lists.append(list) }
  }

  /// Removes a list. Its running lines hold their slots until `finish`.
  mutating func remove(_ id: ListID) { lists.removeAll { $0.id == id } }

  /// Returns the next line and takes a slot for it, or `nil` if no line is ready or no slot is
  /// free.
  mutating func next() -> Turn? {
    guard running < limit else { return nil }
    for index in lists.indices {
      guard let turn = lists[index].take(sparing: full) else { continue }
      let served = lists.remove(at: index)
      if served.waiting > 0 { lists.append(served) }
      running += 1
      if let host = turn.host { occupy(host) }
      return turn
    }
    return nil
  }

  /// Ends a line and frees its slot.
  mutating func finish(_ turn: Turn) {
    running -= 1
    guard let host = turn.host, let count = runningByHost[host] else { return }
    runningByHost[host] = count > 1 ? count - 1 : nil
    if count <= limitPerHost { full.remove(host) }
  }

  private mutating func occupy(_ host: String) {
    let count = runningByHost[host, default: 0] + 1
    runningByHost[host] = count
    if count >= limitPerHost { full.insert(host) }
  }
}
