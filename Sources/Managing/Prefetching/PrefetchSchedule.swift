// PrefetchSchedule: decides which line of which list is prefetched next.

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
    var lines: [Int]
    var next = 0
  }

  private struct List {
    let id: ListID
    var hosts: [Host]
    /// Indices of `hosts` that have lines left.
    var order: TurnOrder
    var waiting: Int

    /// Returns the next line of the first host that is not in `full`.
    mutating func take(sparing full: Set<String>) -> Turn? {
      let position = order.firstPosition { index in
        hosts[index].name.map { !full.contains($0) } ?? true
      }
      return position.map { take(fromHost: order.take(at: $0)) }
    }

    private mutating func take(fromHost index: Int) -> Turn {
      let line = hosts[index].lines[hosts[index].next]
      hosts[index].next += 1
      waiting -= 1
      if hosts[index].next < hosts[index].lines.count {
        order.append(index)
      } else {
        hosts[index].lines = []
      }
      return Turn(list: id, line: line, host: hosts[index].name)
    }
  }

  private let limit: Int
  private let limitPerHost: Int
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
  init(limit: Int, limitPerHost: Int) { (self.limit, self.limitPerHost) = (limit, limitPerHost) }

  /// The number of waiting lines in all lists.
  var waiting: Int { lists.reduce(0) { $0 + $1.waiting } }

  /// Adds a list at the end of the order. `hosts` contains the host of each line.
  mutating func add(_ id: ListID, hosts: [String?]) {
    var list = List(id: id, hosts: [], order: TurnOrder(), waiting: hosts.count)
    var indices: [String?: Int] = [:]
    for (line, name) in hosts.enumerated() {
      if let index = indices[name] {
        list.hosts[index].lines.append(line)
      } else {
        indices[name] = list.hosts.count
        list.order.append(list.hosts.count)
        list.hosts.append(Host(name: name, lines: [line]))
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
    full.remove(host)
  }

  private mutating func occupy(_ host: String) {
    let count = runningByHost[host, default: 0] + 1
    runningByHost[host] = count
    if count >= limitPerHost { full.insert(host) }
  }
}

/// A queue of indices that also allows removal near the front. Removed elements are compacted
/// lazily.
struct TurnOrder {
  private var elements: [Int] = []
  private var first = 0

  /// Appends an index.
  mutating func append(_ element: Int) { elements.append(element) }

  /// Returns the position of the first ready index. O(n) in the number of elements before it.
  func firstPosition(where isReady: (Int) -> Bool) -> Int? {
    elements[first...].firstIndex(where: isReady)
  }

  /// Removes and returns the element at a position. O(n) in the number of elements before it.
  mutating func take(at position: Int) -> Int {
    let element = elements[position]
    for index in stride(from: position, to: first, by: -1) {
      elements[index] = elements[index - 1]
    }
    first += 1
    if first > elements.count / 2 {
      elements.removeFirst(first)
      first = 0
    }
    return element
  }
}
