// PrefetchScheduleTests: tests the order and limits of PrefetchSchedule.

import Model
import TestSupport
import Testing

@testable import Managing

@Suite(.onOwnThreads) struct PrefetchScheduleTests {
  private func turns(_ schedule: inout PrefetchSchedule) -> [PrefetchSchedule.Turn] {
    var turns: [PrefetchSchedule.Turn] = []
    while let turn = schedule.next() { turns.append(turn) }
    return turns
  }

  @Test func `lists take turns, and so do the hosts within a list`() {
    var schedule = PrefetchSchedule(limit: 1, limitPerHost: 1)
    schedule.add(1, hosts: ["a", "a", "b", "c"])
    schedule.add(2, hosts: ["a", "a"])
    var order: [[Int]] = []
    while let turn = schedule.next() {
      order.append([turn.list, turn.line])
      schedule.finish(turn)
    }
    #expect(order == [[1, 0], [2, 0], [1, 2], [2, 1], [1, 3], [1, 1]])
    #expect(schedule.waiting == 0)
  }

  @Test func `a host at its limit is skipped and keeps its turn`() {
    var schedule = PrefetchSchedule(limit: 3, limitPerHost: 1)
    schedule.add(1, hosts: ["a", "a", "b"])
    schedule.add(2, hosts: ["a"])
    let first = turns(&schedule)
    #expect(first.map(\.line) == [0, 2])
    schedule.finish(first[0])
    // The second list has waited longest for this host.
    #expect(turns(&schedule).map(\.list) == [2])
  }

  @Test func `limits may change while lines run`() {
    var schedule = PrefetchSchedule(limit: 4, limitPerHost: 2)
    schedule.add(1, hosts: ["a", "a", "a", "a", "b"])
    let first = turns(&schedule)
    #expect(first.map(\.line) == [0, 4, 1])
    schedule.set(limit: 4, limitPerHost: 1)
    schedule.finish(first[0])
    #expect(turns(&schedule).isEmpty)
    schedule.finish(first[2])
    #expect(turns(&schedule).map(\.line) == [2])
    schedule.set(limit: 4, limitPerHost: 2)
    #expect(turns(&schedule).map(\.line) == [3])
  }

  @Test func `local files have no limit per host`() {
    var schedule = PrefetchSchedule(limit: 3, limitPerHost: 1)
    schedule.add(1, hosts: [nil, nil, nil, nil])
    #expect(turns(&schedule).count == 3)
  }

  @Test func `a removed list starts no more lines and frees its slots as they end`() {
    var schedule = PrefetchSchedule(limit: 2, limitPerHost: 2)
    schedule.add(1, hosts: ["a", "a", "a"])
    let running = turns(&schedule)
    schedule.remove(1)
    schedule.add(2, hosts: ["b"])
    #expect(schedule.next() == nil)
    #expect(schedule.waiting == 1)
    schedule.finish(running[0])
    #expect(schedule.next()?.list == 2)
    schedule.finish(running[1])
    #expect(schedule.next() == nil)
    #expect(schedule.running == 1)
  }

  /// A naive model of the schedule that searches everything in each step.
  private struct Model {
    /// Lines that have not started, by list, with their hosts.
    var waiting: [Int: [Int: String?]] = [:]
    var servedAt: [Int: Int] = [:]
    var running: Set<PrefetchSchedule.Turn> = []
    var begun: Set<PrefetchSchedule.Turn> = []
    var step = 0
    let limitPerHost: Int

    func isFree(_ host: String?) -> Bool {
      guard let host else { return true }
      return running.count { $0.host == host } < limitPerHost
    }

    func canGive(_ list: Int) -> Bool {
      Set((waiting[list] ?? [:]).values).contains { isFree($0) }
    }
  }

  @Test(arguments: [1, 2, 3])
  func `in 100,000 random steps each line runs once, within the limits and without starvation`(
    seed: Int
  ) {
    var random = SeededGenerator(seed: UInt64(seed))
    let limit = 2 + seed
    var schedule = PrefetchSchedule(limit: limit, limitPerHost: seed)
    var model = Model(limitPerHost: seed)
    let hosts: [String?] = ["a", "b", "c", "d", "e", nil]
    var lastList = 0
    var given = 0

    func check(_ turn: PrefetchSchedule.Turn) {
      given += 1
      #expect(model.running.count < limit)
      #expect(model.isFree(turn.host))
      #expect(model.begun.insert(turn).inserted)
      // The line was waiting, with this host.
      let host = model.waiting[turn.list]?[turn.line]
      #expect(host == .some(turn.host))
      // No list with a ready line has waited longer.
      let last = model.servedAt[turn.list] ?? 0
      for other in model.waiting.keys where (model.servedAt[other] ?? 0) < last {
        #expect(!model.canGive(other))
      }
      model.waiting[turn.list]?[turn.line] = nil
      if model.waiting[turn.list]?.isEmpty == true { model.waiting[turn.list] = nil }
      model.servedAt[turn.list] = model.step
      model.running.insert(turn)
    }

    for step in 1...100_000 {
      model.step = step
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<3 where model.waiting.count < 8:
        lastList += 1
        let lines = (0..<Int.random(in: 0...40, using: &random)).map { _ in
          hosts.randomElement(using: &random) ?? nil
        }
        schedule.add(lastList, hosts: lines)
        // A new list comes last, so it counts as served now.
        model.servedAt[lastList] = step
        if !lines.isEmpty {
          model.waiting[lastList] = Dictionary(uniqueKeysWithValues: lines.enumerated().map { $0 })
        }
      case 3:
        guard let list = model.waiting.keys.sorted().randomElement(using: &random),
          Int.random(in: 0..<10, using: &random) == 0
        else { continue }
        schedule.remove(list)
        model.waiting[list] = nil
      case 4..<55:
        if let turn = schedule.next() {
          check(turn)
        } else {
          #expect(
            model.running.count == limit || model.waiting.keys.allSatisfy { !model.canGive($0) })
        }
      default:
        let running = model.running.sorted { ($0.list, $0.line) < ($1.list, $1.line) }
        guard let turn = running.randomElement(using: &random) else { continue }
        schedule.finish(turn)
        model.running.remove(turn)
      }
      #expect(schedule.running == model.running.count)
      #expect(schedule.waiting == model.waiting.values.reduce(0) { $0 + $1.count })
    }
    for turn in model.running { schedule.finish(turn) }
    model.running = []
    while let turn = schedule.next() {
      model.step += 1
      check(turn)
      schedule.finish(turn)
      model.running.remove(turn)
    }
    #expect(model.waiting.isEmpty && schedule.running == 0)
    #expect(given > 10_000)
  }
}
