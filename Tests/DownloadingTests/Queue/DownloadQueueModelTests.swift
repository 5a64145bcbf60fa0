// DownloadQueueModelTests: tests of DownloadQueue against a simple model.

import Core
import TestSupport
import Testing

@testable import Downloading

/// Makes a small queue for tests.
private func makeQueue(
  limit: Int = 3, perHost: Int = 2, share: Int = 1, silent: Int = 4, waiting: Int = 10,
  order: DownloadOrder = .fifo
) -> DownloadQueue {
  DownloadQueue(
    DownloadQueue.Limits(
      total: limit, perHost: perHost, share: share, silent: silent, waiting: waiting,
      timeout: .seconds(15)), order: order)
}

@Suite(.onOwnThreads) struct DownloadQueueModelTests {
  @Test(arguments: DownloadOrder.allCases)
  func `a random schedule behaves like the model`(_ order: DownloadOrder) {
    var random = SeededGenerator(seed: 20_261_121)
    let start = ContinuousClock.now
    var queue = makeQueue(
      limit: 8, perHost: 3, share: QueueModel.share, silent: 4, waiting: 20, order: order)
    var model = QueueModel(
      limit: 8, limitPerHost: 3, silentLimit: 4, queueLimit: 20, order: order)
    var now = start
    var faults: [String] = []
    var known: [Int] = []

    for step in 1...30_000 {
      now += .milliseconds(Int.random(in: 0...400, using: &random))
      var actions: [DownloadQueue.Action] = []
      var expected: [DownloadQueue.Action] = []
      // A waiting or running load.
      let someone = known.randomElement(using: &random) ?? 0
      switch Int.random(in: 0..<29, using: &random) {
      case 20, 21:
        actions = queue.silence(someone)
        expected = model.silence(someone)
      case 23..<26:
        let rate = Int.random(in: 0..<4, using: &random)
        actions = queue.slow(someone, rate: rate)
        expected = model.slow(someone, rate: rate)
      case 22, 26:
        queue.recover(someone)
        model.recover(someone)
      case 27, 28:
        let client = QueueModel.clients.randomElement(using: &random) ?? .background
        actions = queue.join(someone, client: client)
        expected = model.join(someone, client: client)
      case 0..<9:
        let host = Int.random(in: 0..<QueueModel.hosts, using: &random)
        let priority = LoadPriority.allCases.randomElement(using: &random) ?? .normal
        let clients = Array(
          QueueModel.clients.shuffled(using: &random).prefix(Int.random(in: 0..<3, using: &random)))
        actions = queue.add(step, host: "h\(host)", clients: clients, priority: priority, now: now)
        expected = model.add(
          step, host: host, clients: clients, priority: priority, deadline: now + .seconds(15))
      case 9..<14:
        let ended = model.running.map(\.id).randomElement(using: &random) ?? 0
        actions = queue.remove(ended)
        expected = model.remove(ended)
      case 14:
        actions = queue.remove(someone)
        expected = model.remove(someone)
      case 15, 16:
        let priority = LoadPriority.allCases.randomElement(using: &random) ?? .normal
        queue.raise(someone, to: priority)
        model.raise(someone, to: priority)
      case 17:
        actions = queue.expire(now: now)
        expected = model.expire(now: now)
      case 18: break
      default:
        // Paused for a quarter of the time.
        if Int.random(in: 0..<4, using: &random) == 0 {
          queue.pause()
          model.isPaused = true
        } else {
          actions = queue.resume()
          expected = model.resume()
        }
      }
      known = model.waiting.map(\.id) + model.running.map(\.id)
      if actions != expected { faults.append("\(step): \(actions), not \(expected)") }
      if queue.runningCount != model.running.count || queue.waitingCount != model.waiting.count
        || queue.silentCount != model.silent.count || queue.slowCount != model.rates.count
        || queue.surplusCount != model.surplus
      {
        faults.append("\(step): counts")
      }
      if let fault = model.fault { faults.append("\(step): \(fault)") }
      guard faults.isEmpty else { break }
    }
    #expect(faults == [])
    // At the end every load gets a slot.
    #expect(queue.resume() == model.resume())
    while let ended = model.running.first?.id {
      #expect(queue.remove(ended) == model.remove(ended))
    }
    #expect(model.waiting.isEmpty && queue.waitingCount == 0 && queue.runningCount == 0)
  }

  @Test func `a load has a place in the turns of a few clients only`() {
    // Given a load that waits, and many clients
    var queue = makeQueue(limit: 1, share: 1, silent: 0)
    let start = ContinuousClock.now
    _ = queue.add(1, host: "a", priority: .normal, now: start)
    _ = queue.add(2, host: "b", clients: [.network(.v4(1))], priority: .normal, now: start)
    // When
    for number in 2...20_000 {
      let actions = queue.join(2, client: .network(.v4(UInt32(number))))
      if !actions.isEmpty { Issue.record("it starts without room") }
    }
    // Then
    #expect(queue.waiting.first?.clients.count == DownloadQueue.maximumClients)
    #expect(queue.remove(1) == [.start(2)])
  }
}
