// ClientShareQueueTests: how DownloadQueue shares places among clients.

import Core
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
}
