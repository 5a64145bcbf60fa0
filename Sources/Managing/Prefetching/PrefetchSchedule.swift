// PrefetchSchedule: which line of which list is prefetched next. Pure: it is told what happened and says what is to be
// done.

/// The lists being prefetched, taking turns. A place goes to the list served longest ago of those that have a line to
/// give, and within it to the host served longest ago of those that are not full. Whoever is passed over because its
/// hosts are full keeps its place in the order, so nobody is passed over for good.
struct PrefetchSchedule {
  typealias ListID = Int

  /// A line on its way: it holds a place, and one of its host's, until it is finished with.
  struct Turn: Hashable, Sendable {
    let list: ListID
    /// Which of the list's lines, from 0.
    let line: Int
    /// Whom it asks; `nil` where that is nobody outside of this machine, who is not to be spared.
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

    /// The next line of the first host in the order that is not among `full`.
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
  /// Served longest ago first.
  private var lists: [List] = []
  private var runningByHost: [String: Int] = [:]
  /// Hosts of which as many lines are on their way as may.
  private var full: Set<String> = []

  /// Lines on their way.
  private(set) var running = 0

  /// - Parameters:
  ///   - limit: most lines on their way at once, of all lists together.
  ///   - limitPerHost: most of them that ask one host.
  init(limit: Int, limitPerHost: Int) { (self.limit, self.limitPerHost) = (limit, limitPerHost) }

  /// Lines of all lists that wait for their turn.
  var waiting: Int { lists.reduce(0) { $0 + $1.waiting } }

  /// Takes in a list, of which `hosts` tells for each line whom it asks. It comes last.
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

  /// Lets go of a list; its lines on their way hold their places until they are finished with.
  mutating func remove(_ id: ListID) { lists.removeAll { $0.id == id } }

  /// The next line, whose place is taken from here on; `nil` while there is none, or no place.
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

  /// A line is finished with, however it ended; its place is free.
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

/// Numbers in the order of their turns, from an array whose taken front is given up now and then.
struct TurnOrder {
  private var elements: [Int] = []
  private var first = 0

  /// Puts one behind all others.
  mutating func append(_ element: Int) { elements.append(element) }

  /// Where the first is that is ready. Takes time in proportion to how many before it are not.
  func firstPosition(where isReady: (Int) -> Bool) -> Int? {
    elements[first...].firstIndex(where: isReady)
  }

  /// Takes out the one there; those before it, who are few, keep their order.
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
