// PrefetchTableTests: tests the order and limits in which the lines of lists run.

import Core
import TestSupport
import Testing

@testable import Managing

@Suite(.onOwnThreads) struct PrefetchTableTests {
  /// A line of a list, by the list's number and its own, from 1.
  private struct Started: Hashable {
    let list: Int
    let line: Int

    init(_ list: Int, _ line: Int) {
      self.list = list
      self.line = line
    }

    init(_ turn: PrefetchTable.Turn) { self.init(turn.list, turn.line.number) }
  }

  private let now = ContinuousClock.now

  private func table(limit: Int, limitPerHost: Int) -> PrefetchTable {
    var settings = PrefetchSettings()
    settings.limit = limit
    settings.limitPerHost = limitPerHost
    settings.lists = 100
    return PrefetchTable(settings, endedLists: 9)
  }

  /// Adds a list whose lines have these hosts, `nil` for local files.
  private func add(
    _ id: String, _ hosts: [String?], to table: inout PrefetchTable
  ) throws -> Int {
    let lines = try hosts.enumerated().map { index, host in
      let url = host.map { "http://\($0)/\(index)" } ?? "local:///\(index)"
      return PrefetchLine(
        number: index + 1,
        request: .success(
          ImageRequest(source: try SourceURL(parsing: url), transform: Transform())))
    }
    return try table.add(PrefetchList(id: id, lines: lines, at: now), at: now)
  }

  private func takeAll(_ table: inout PrefetchTable) -> [PrefetchTable.Turn] {
    var turns: [PrefetchTable.Turn] = []
    while let turn = table.take() { turns.append(turn) }
    return turns
  }

  private func settle(_ turn: PrefetchTable.Turn, in table: inout PrefetchTable) {
    table.settle(turn, as: .finished, at: now)
  }

  @Test func `lists take turns, and so do the hosts within a list`() throws {
    var table = table(limit: 1, limitPerHost: 1)
    let first = try add("1", ["a", "a", "b", "c"], to: &table)
    let second = try add("2", ["a", "a"], to: &table)
    var order: [Started] = []
    while let turn = table.take() {
      order.append(Started(turn))
      settle(turn, in: &table)
    }
    #expect(
      order == [
        Started(first, 1), Started(second, 1), Started(first, 3), Started(second, 2),
        Started(first, 4), Started(first, 2),
      ])
    #expect(table.figures.waiting == 0 && table.figures.finished == 6)
  }

  @Test func `a host at its limit is skipped and keeps its turn`() throws {
    var table = table(limit: 3, limitPerHost: 1)
    _ = try add("1", ["a", "a", "b"], to: &table)
    let second = try add("2", ["a"], to: &table)
    let first = takeAll(&table)
    #expect(first.map(\.line.number) == [1, 3])
    settle(first[0], in: &table)
    // The second list has waited longest for this host.
    #expect(takeAll(&table).map(\.list) == [second])
  }

  @Test func `limits may change while lines run`() throws {
    var table = table(limit: 4, limitPerHost: 2)
    _ = try add("1", ["a", "a", "a", "a", "b"], to: &table)
    let first = takeAll(&table)
    #expect(first.map(\.line.number) == [1, 5, 2])
    table.settings.limitPerHost = 1
    settle(first[0], in: &table)
    #expect(takeAll(&table).isEmpty)
    settle(first[2], in: &table)
    #expect(takeAll(&table).map(\.line.number) == [3])
    table.settings.limitPerHost = 2
    #expect(takeAll(&table).map(\.line.number) == [4])
  }

  @Test func `a cancelled list starts no more lines and frees its slots as they end`() throws {
    var table = table(limit: 2, limitPerHost: 2)
    _ = try add("1", ["a", "a", "a"], to: &table)
    let running = takeAll(&table)
    #expect(table.cancel("1", at: now) != nil)
    let second = try add("2", ["b"], to: &table)
    #expect(takeAll(&table).isEmpty)
    #expect(table.figures.waiting == 1)
    settle(running[0], in: &table)
    #expect(takeAll(&table).map(\.list) == [second])
    settle(running[1], in: &table)
    #expect(takeAll(&table).isEmpty)
    #expect(table.figures.running == 1)
  }

  /// A naive model of the table that searches everything in each step.
  private struct Model {
    /// Lines that have not started, by list, with their hosts.
    var waiting: [Int: [Int: String?]] = [:]
    var servedAt: [Int: Int] = [:]
    var running: [PrefetchTable.Turn] = []
    var begun: Set<Started> = []
    let limitPerHost: Int

    func isFree(_ host: String?) -> Bool {
      guard let host else { return true }
      return running.count { $0.line.host == host } < limitPerHost
    }

    func canGive(_ list: Int) -> Bool {
      Set((waiting[list] ?? [:]).values).contains { isFree($0) }
    }
  }

  @Test(arguments: [1, 2, 3])
  func `in 20,000 random steps each line runs once, within the limits and without starvation`(
    seed: Int
  ) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let limit = 2 + seed
    var table = table(limit: limit, limitPerHost: seed)
    var model = Model(limitPerHost: seed)
    let hosts: [String?] = ["a", "b", "c", "d", "e", nil]
    for step in 1...20_000 {
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<3 where model.waiting.count < 8:
        let lines = (0..<Int.random(in: 1...40, using: &random)).map { _ in
          hosts.randomElement(using: &random) ?? nil
        }
        let list = try add("\(step)", lines, to: &table)
        // A new list comes last, so it counts as served now.
        model.servedAt[list] = step
        model.waiting[list] = Dictionary(
          uniqueKeysWithValues: lines.enumerated().map { ($0 + 1, $1) })
      case 4..<55:
        guard let turn = table.take() else {
          #expect(
            model.running.count == limit || model.waiting.keys.allSatisfy { !model.canGive($0) })
          continue
        }
        #expect(model.running.count < limit && model.isFree(turn.line.host))
        #expect(model.begun.insert(Started(turn)).inserted)
        // The line was waiting, with this host.
        #expect(model.waiting[turn.list]?[turn.line.number] == .some(turn.line.host))
        // No list with a ready line has waited longer.
        let last = model.servedAt[turn.list] ?? 0
        for other in model.waiting.keys where (model.servedAt[other] ?? 0) < last {
          #expect(!model.canGive(other))
        }
        model.waiting[turn.list]?[turn.line.number] = nil
        if model.waiting[turn.list]?.isEmpty == true { model.waiting[turn.list] = nil }
        model.servedAt[turn.list] = step
        model.running.append(turn)
      default:
        guard let index = model.running.indices.randomElement(using: &random) else { continue }
        settle(model.running.remove(at: index), in: &table)
      }
      #expect(table.figures.running == model.running.count)
      #expect(table.figures.waiting == model.waiting.values.reduce(0) { $0 + $1.count })
    }
    #expect(model.begun.count > 2_000)
  }
}
