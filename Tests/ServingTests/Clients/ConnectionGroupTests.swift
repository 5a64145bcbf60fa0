// ConnectionGroupTests: which connection has been waiting longest, beside a simple model.

import TestSupport
import Testing

@testable import Serving

@Suite struct ConnectionGroupTests {
  private func connection(since now: Int) -> ConnectionWatch {
    ConnectionWatch(descriptor: -1, client: nil, openedAt: now, deadline: .max)
  }

  @Test func `the connection that has been waiting longest is claimed first`() {
    // Given
    var group = ConnectionGroup()
    let connections = [30, 10, 20].map(connection)
    for connection in connections { group.add(connection) }
    // Then
    #expect(group.claimLongestWaiting { _ in true } === connections[1])
    #expect(group.claimLongestWaiting { _ in true } === connections[2])
    #expect(group.claimLongestWaiting { _ in true } === connections[0])
    // And none is claimed twice
    #expect(group.claimLongestWaiting { _ in true } == nil)
  }

  @Test func `a connection that is busy, has input or is closed is not claimed`() {
    var group = ConnectionGroup()
    let connections = (0..<4).map(connection)
    for connection in connections { group.add(connection) }
    connections[0].begin()
    group.remove(connections[1])
    let found = group.claimLongestWaiting { $0 !== connections[2] }
    #expect(found === connections[3])
    // When the busy one waits again
    connections[0].wait(since: 9)
    #expect(group.claimLongestWaiting { $0 !== connections[2] } === connections[0])
  }

  @Test
  func `a request that begins after its connection was claimed is too late, and one before is not`()
  {
    let late = connection(since: 1)
    #expect(late.claim(since: 1))
    let early = connection(since: 1)
    early.begin()
    #expect(!early.claim(since: 1))
    early.wait(since: 2)
    #expect(!early.claim(since: 1))
    #expect(early.claim(since: 2))
  }

  @Test(arguments: 0..<20)
  func `a remembered order is the order of a look at all`(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    var group = ConnectionGroup()
    var model: [(connection: ConnectionWatch, since: Int?)] = []
    for now in 0..<2_000 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<4:
        let new = connection(since: now)
        group.add(new)
        model.append((new, now))
      case 4..<6 where !model.isEmpty:
        let index = model.indices.randomElement(using: &random) ?? 0
        model[index].connection.begin()
        model[index].since = nil
      case 6..<8 where !model.isEmpty:
        let index = model.indices.randomElement(using: &random) ?? 0
        model[index].connection.wait(since: now)
        model[index].since = now
      case 8 where !model.isEmpty:
        let index = model.indices.randomElement(using: &random) ?? 0
        group.remove(model.remove(at: index).connection)
      default:
        let expected = model.filter { $0.since != nil }.min { ($0.since ?? 0) < ($1.since ?? 0) }
        let found = group.claimLongestWaiting { _ in true }
        #expect(found === expected?.connection, "seed \(seed), step \(now)")
        if let found {
          group.remove(found)
          model.removeAll { $0.connection === found }
        }
      }
    }
  }
}
