// WaitingLoads: the loads that wait for a place, by host, client and priority.

import Model
import Platform

/// The waiting loads. Without side effects.
///
/// A load waits in one lane for each client that it is for. It leaves all of them together.
struct WaitingLoads {
  typealias ID = DownloadQueue.ID

  /// The loads of one client for one host.
  struct Lane: Hashable {
    let host: String
    let client: LoadClient
  }

  /// How the loads of a lane compare with those of others.
  struct Standing {
    /// Whether its client has its share already. Its loads then compare as of the lowest priority.
    let isAboveShare: Bool
    /// The client's turn within one priority; the lowest is the first.
    let turn: Int
  }

  /// A load in a lane.
  fileprivate struct Entry {
    let id: ID
    /// The load's number in order of arrival.
    let number: Int
    /// The client's number among those of the load.
    let position: Int
  }

  private struct Place {
    let host: String
    var clients: [LoadClient]
    var rank: Int
    let number: Int
  }

  private typealias Order = (Int, Int, Int, Int, Int)

  /// The maximum number of clients of a load. Further ones change little, and each costs time at every start.
  static let maximumClients = 16

  /// That of loads of one client and one priority.
  var order: DownloadOrder
  /// The loads of each lane by priority rank, in order of arrival. No lane is empty.
  private var lanes: [Lane: [Deque<Entry>]] = [:]
  private var places: [ID: Place] = [:]
  /// The number of loads of each host.
  private var counts: [String: Int] = [:]
  /// The loads in order of arrival, which is also the order of their deadlines. Loads that no longer
  /// wait leave holes, but the first one waits.
  private var deadlines = Deque<(id: ID, deadline: ContinuousClock.Instant)>()
  private var arrivals = 0

  /// Creates an empty queue.
  init(order: DownloadOrder) { self.order = order }

  /// The number of loads.
  var count: Int { places.count }
  var isEmpty: Bool { places.isEmpty }
  /// The load with the earliest deadline.
  var firstDeadline: (id: ID, deadline: ContinuousClock.Instant)? { deadlines.first }

  /// Returns the number of loads of a host.
  func count(of host: String) -> Int { counts[host] ?? 0 }

  /// Adds a load for its clients, at least one.
  mutating func add(
    _ id: ID, host: String, clients: [LoadClient], priority: LoadPriority,
    deadline: ContinuousClock.Instant
  ) {
    arrivals += 1
    places[id] = Place(host: host, clients: [], rank: priority.rank, number: arrivals)
    counts[host, default: 0] += 1
    deadlines.append((id, deadline))
    for client in clients { join(id, client: client) }
  }

  /// Adds a client that a load is for, up to `maximumClients`. Returns whether it is a new one; ignores an unknown load.
  @discardableResult mutating func join(_ id: ID, client: LoadClient) -> Bool {
    guard let place = places[id], place.clients.count < Self.maximumClients,
      !place.clients.contains(client)
    else { return false }
    let entry = Entry(id: id, number: place.number, position: place.clients.count)
    places[id]?.clients.append(client)
    insert(entry, into: Lane(host: place.host, client: client), rank: place.rank)
    return true
  }

  /// Raises the priority of a load; never lowers it. The load keeps its order of arrival.
  mutating func raise(_ id: ID, to priority: LoadPriority) {
    guard let place = places[id], place.rank < priority.rank else { return }
    places[id]?.rank = priority.rank
    for (position, client) in place.clients.enumerated() {
      let lane = Lane(host: place.host, client: client)
      takeOut(place, from: lane)
      let entry = Entry(id: id, number: place.number, position: position)
      insert(entry, into: lane, rank: priority.rank)
    }
  }

  /// Removes a load and returns whether it waited.
  @discardableResult mutating func remove(_ id: ID) -> Bool {
    guard let place = places.removeValue(forKey: id) else { return false }
    for client in place.clients { takeOut(place, from: Lane(host: place.host, client: client)) }
    let count = counts[place.host] ?? 0
    counts[place.host] = count > 1 ? count - 1 : nil
    tidyDeadlines()
    return true
  }

  /// Returns the load that starts next, and the client whose place it takes. Takes time linear in the number of lanes.
  ///
  /// - Parameter standing: tells how a lane compares; `nil` if none of its loads may start.
  func next(standing: (Lane) -> Standing?) -> (id: ID, host: String, client: LoadClient)? {
    var best: (order: Order, id: ID, lane: Lane)?
    for (lane, loads) in lanes {
      guard let standing = standing(lane),
        let rank = loads.lastIndex(where: { !$0.isEmpty }),
        let entry = order == .fifo ? loads[rank].first : loads[rank].last
      else { continue }
      let order: Order = (
        standing.isAboveShare ? LoadPriority.low.rank : rank, -standing.turn, rank,
        order == .fifo ? -entry.number : entry.number, -entry.position
      )
      if best.map({ $0.order < order }) ?? true { best = (order, entry.id, lane) }
    }
    return best.map { ($0.id, $0.lane.host, $0.lane.client) }
  }

  private mutating func insert(_ entry: Entry, into lane: Lane, rank: Int) {
    let none = [Deque<Entry>](repeating: Deque(), count: LoadPriority.allCases.count)
    let index = lanes[lane]?[rank].index(of: entry.number) ?? 0
    lanes[lane, default: none][rank].insert(entry, at: index)
  }

  private mutating func takeOut(_ place: Place, from lane: Lane) {
    guard let index = lanes[lane]?[place.rank].index(of: place.number) else { return }
    lanes[lane]?[place.rank].remove(at: index)
    if lanes[lane]?.allSatisfy(\.isEmpty) == true { lanes[lane] = nil }
  }

  /// Removes the holes at the front of `deadlines`, and all of them when they outnumber the loads.
  private mutating func tidyDeadlines() {
    while let first = deadlines.first, places[first.id] == nil { _ = deadlines.popFirst() }
    guard deadlines.count > 2 * places.count + 32 else { return }
    let places = places
    deadlines.removeAll { places[$0.id] == nil }
  }
}

extension Deque<WaitingLoads.Entry> {
  /// Returns the index of the load with this number, or the one at which it belongs.
  fileprivate func index(of number: Int) -> Int {
    var low = 0
    var high = count
    while low < high {
      let middle = (low + high) / 2
      if self[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
