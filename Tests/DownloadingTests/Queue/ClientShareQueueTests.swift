// ClientShareQueueTests: how DownloadQueue shares places among clients.

import Model
import TestSupport
import Testing

@testable import Downloading

@Suite struct ClientShareQueueTests {
  private let start = ContinuousClock.now
  private let greedy = LoadClient.network(.v4(1))
  private let modest = LoadClient.network(.v4(2))

  /// Adds a load from a host of its own.
  private func add(
    _ id: Int, for clients: LoadClient..., priority: LoadPriority = .normal,
    to queue: inout DownloadQueue
  ) -> [DownloadQueue.Action] {
    queue.add(id, host: "h\(id)", clients: clients, priority: priority, now: start)
  }

  /// Adds loads of one client until the queue starts no more.
  private func fill(_ queue: inout DownloadQueue, ids: ClosedRange<Int>, for client: LoadClient) {
    for id in ids { _ = add(id, for: client, to: &queue) }
  }

  @Test func `hanging URLs of one client leave another one a place of their host`() {
    var queue = makeQueue(limit: 9, perHost: 2, silent: 4)
    func add(_ id: Int, for client: LoadClient) -> [DownloadQueue.Action] {
      queue.add(id, host: "host", clients: [client], priority: .normal, now: start)
    }
    // Given: both places of a host, and one that waits
    for id in 1...3 { _ = add(id, for: greedy) }
    #expect(add(4, for: modest) == [])
    // When, then
    #expect(queue.silence(1) == [.start(4)])
    #expect(queue.silence(2) == [])
    #expect(add(5, for: modest) == [])
    queue.recover(4)
    #expect(queue.remove(4) == [.start(5)])
    // Nor does one of them hold the other places.
    #expect(queue.remove(1) == [])
    #expect(queue.remove(5) == [.start(3)])
    #expect(queue.silence(3) == [])
    #expect(queue.remove(2) == [])
    #expect(add(6, for: greedy) == [.start(6)])
    #expect(add(7, for: modest) == [.start(7)])
  }

  @Test func `a client that is alone has every place`() {
    var queue = makeQueue(limit: 4, share: 1)
    fill(&queue, ids: 1...6, for: greedy)
    #expect(queue.runningCount == 4 && queue.waitingCount == 2 && queue.surplusCount == 3)
    #expect(queue.remove(1) == [.start(5)])
  }

  @Test func `a client that has every place leaves others their shares at once`() {
    // Given
    var queue = makeQueue(limit: 4, share: 2, silent: 8)
    fill(&queue, ids: 1...9, for: greedy)
    // Then the other client has its share, and no more, as long as the places are taken
    #expect(add(10, for: modest, to: &queue) == [.start(10)])
    #expect(add(11, for: modest, to: &queue) == [.start(11)])
    #expect(add(12, for: modest, to: &queue) == [])
    // The first one gets no place back before it has less than its share, or all have room.
    #expect(queue.remove(1) == [] && queue.remove(2) == [])
    #expect(queue.remove(3) == [.start(5)])
    #expect(queue.remove(10) == [.start(12)])
  }

  @Test func `shares together are at most the limit, and the excess has a limit`() {
    var queue = makeQueue(limit: 2, share: 1, silent: 1, waiting: 20)
    fill(&queue, ids: 1...2, for: greedy)
    #expect(add(3, for: modest, to: &queue) == [.start(3)])
    // Two clients have their shares, and one of them a place more.
    #expect(add(4, for: .network(.v4(3)), to: &queue) == [])
    #expect(queue.runningCount == 3)
    #expect(queue.remove(3) == [.start(4)])
  }

  @Test(arguments: DownloadOrder.allCases)
  func `clients take turns within a priority`(_ order: DownloadOrder) {
    // Given loads of one client before those of another
    var queue = makeQueue(limit: 2, share: 2, silent: 0, waiting: 20, order: order)
    fill(&queue, ids: 1...4, for: greedy)
    for id in 5...6 { _ = add(id, for: modest, to: &queue) }
    // Then the client with the fewest transfers is next, and among equals the first in order
    #expect(queue.remove(1) == [.start(order == .fifo ? 5 : 6)])
    #expect(queue.remove(2) == [.start(order == .fifo ? 3 : 4)])
    #expect(queue.remove(order == .fifo ? 3 : 4) == [.start(order == .fifo ? 4 : 3)])
  }

  @Test func `a high priority goes first within the shares alone`() {
    var queue = makeQueue(limit: 2, share: 1, silent: 0, waiting: 20)
    fill(&queue, ids: 1...2, for: greedy)
    _ = add(3, for: greedy, priority: .high, to: &queue)
    _ = add(4, for: modest, to: &queue)
    _ = add(5, for: .network(.v4(3)), priority: .high, to: &queue)
    // A client above its share counts as of low priority, whatever it asks for.
    #expect(queue.remove(1) == [.start(5)])
    #expect(queue.remove(5) == [.start(4)])
    #expect(queue.remove(4) == [.start(3)])
  }

  @Test func `a load that another client joins takes that client's place`() {
    // Given a load behind the share of its first client
    var queue = makeQueue(limit: 2, share: 1, silent: 4)
    fill(&queue, ids: 1...4, for: greedy)
    #expect(queue.waitingCount == 2)
    // When a participant of another client joins the last one
    #expect(queue.join(4, client: greedy) == [], "it is the same client")
    #expect(queue.join(4, client: modest) == [.start(4)])
    // Then it has taken that client's share
    #expect(add(5, for: modest, to: &queue) == [])
    #expect(queue.join(4, client: .unlimited) == [], "it runs already")
    #expect(queue.join(99, client: modest) == [])
    // The load that waits is in all its lanes once.
    #expect(queue.join(3, client: modest) == [])
    queue.raise(3, to: .high)
    #expect(queue.remove(4) == [.start(3)])
    #expect(queue.waitingCount == 1)
    #expect(queue.remove(3) == [.start(5)])
    #expect(queue.waitingCount == 0)
  }

  @Test func `a load has a place in the turns of a few clients only`() {
    // Given a load that waits, and many clients
    var queue = makeQueue(limit: 1, share: 1, silent: 0)
    _ = add(1, for: .unlimited, to: &queue)
    _ = add(2, for: greedy, to: &queue)
    // When
    let networks = (2...20_000).map { LoadClient.network(.v4($0)) }
    for network in networks where !queue.join(2, client: network).isEmpty {
      Issue.record("it starts without room")
    }
    // Then
    #expect(queue.waiting.first?.clients.count == DownloadQueue.maximumClients)
    #expect(queue.remove(1) == [.start(2)])
  }

  @Test(arguments: [LoadClient.background, .network(.v4(2))])
  func `no stalled load ends for one above the share of its client`(client: LoadClient) {
    // Given as many loads as may run at all, two of them stalled
    var queue = makeQueue(limit: 2, share: 1, silent: 1, waiting: 20)
    fill(&queue, ids: 1...2, for: greedy)
    _ = add(3, for: modest, to: &queue)
    for id in 1...2 { _ = queue.silence(id) }
    // When, then
    #expect(add(4, for: client, to: &queue) == [])
    #expect(add(5, for: .network(.v4(3)), to: &queue) == [.giveUp(1), .start(5)])
    #expect(queue.remove(2) == [])
    #expect(queue.remove(3) == [.start(4)])
  }

  @Test func `a load that several clients wait for leaves all their lanes together`() {
    var queue = makeQueue(limit: 1, share: 1, silent: 0)
    _ = add(1, for: .unlimited, to: &queue)
    _ = add(2, for: greedy, modest, to: &queue)
    _ = queue.add(
      3, host: "h2", clients: [modest], priority: .normal, now: start + .seconds(1))
    #expect(queue.expire(now: start + .seconds(15)) == [.expire(2)])
    #expect(queue.remove(3) == [])
    #expect(queue.waitingCount == 0 && queue.remove(1) == [])
  }

  @Test func `clients without a share wait for none, and have no turn to wait for`() {
    var queue = makeQueue(limit: 2, share: 1, silent: 4, waiting: 20)
    for id in 1...4 { _ = add(id, for: .unlimited, to: &queue) }
    #expect(queue.runningCount == 2 && queue.surplusCount == 0)
    // A client below its share waits behind them: none of them has too much.
    #expect(add(5, for: modest, to: &queue) == [])
    #expect(queue.remove(1) == [.start(3)])
  }

  @Test func `work in the background runs in places that clients do not need`() {
    // Given every place in the background
    var queue = makeQueue(limit: 2, share: 1, silent: 4, waiting: 20)
    fill(&queue, ids: 1...3, for: .background)
    _ = queue.add(4, host: "h4", clients: [], priority: .high, now: start)
    #expect(queue.surplusCount == 2)
    // Then clients start as if it did not run, up to the limit
    #expect(add(5, for: modest, to: &queue) == [.start(5)])
    #expect(add(6, for: .unlimited, to: &queue) == [.start(6)])
    #expect(add(7, for: modest, to: &queue) == [])
    #expect(queue.surplusCount == 2 && queue.runningCount == 4)
    // What clients wait for is first, also above their shares.
    #expect(queue.remove(5) == [.start(7)])
    #expect(queue.remove(1) == [] && queue.remove(2) == [])
    #expect(queue.remove(6) == [.start(4)])
    #expect(queue.remove(7) == [.start(3)])
  }

  @Test func `a revalidation that a client waits for has its place`() {
    var queue = makeQueue(limit: 1, share: 1, silent: 4)
    fill(&queue, ids: 1...2, for: .background)
    #expect(queue.join(2, client: modest) == [.start(2)])
  }

  @Test func `a stalled load of the client with the most of them ends for another`() {
    // Given as many stalled loads as there may be: the slowest is that of a client with one
    var queue = makeQueue(limit: 1, share: 1, silent: 2, waiting: 20)
    for (id, client, rate) in [(1, greedy, 9), (2, modest, 1), (3, greedy, 5)] {
      #expect(add(id, for: client, to: &queue) == [.start(id)])
      #expect(queue.slow(id, rate: rate) == [])
    }
    // Then
    #expect(add(4, for: modest, to: &queue) == [.giveUp(3), .start(4)])
    #expect(queue.slow(4, rate: 4) == [])
    // Of clients with as many, the slowest.
    #expect(add(5, for: .unlimited, to: &queue) == [.giveUp(2), .start(5)])
  }

  @Test func `a stalled load is not in its client's share until it recovers`() {
    var queue = makeQueue(limit: 4, share: 1, silent: 4)
    _ = add(1, for: greedy, to: &queue)
    _ = queue.silence(1)
    _ = add(2, for: greedy, to: &queue)
    #expect(queue.surplusCount == 0)
    queue.recover(1)
    #expect(queue.surplusCount == 1)
    _ = queue.slow(2, rate: 3)
    #expect(queue.surplusCount == 0)
    queue.recover(2)
    queue.recover(2)
    #expect(queue.surplusCount == 1)
    #expect(queue.remove(1) == [] && queue.surplusCount == 0)
  }
}
