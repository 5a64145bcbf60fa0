// LostPurgesTests: no purge is lost when Redis loses its data, a part of it, or gets old data back.

import Caching
import Core
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) final class LostPurgesTests: PurgingMachines {
  @Test func `a Redis without its data is a purge of everything`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    try await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    server.kill(losingData: true)
    try server.start()
    try await eventually {
      second.applied == [.tag("a"), .everything] && first.applied == [.everything]
    }
    try await second.whenSynchronised()
    try await first.whenSynchronised()
    try await first.fleet.purge(.tag("b"))
    try await eventually { second.applied.last == .tag("b") }
  }

  @Test(arguments: ["FLUSHALL", "DEL pictor:purges", "DEL pictor:epoch"])
  func `a stream that vanishes under its readers is a new epoch`(command: String) async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    let parts = command.split(separator: " ").map(String.init)
    if parts.count == 2 {
      try server.command(parts[0], parts[1])
    } else {
      try server.command(parts[0])
    }
    try await first.fleet.purge(.tag("a"))
    // Purges of the old stream may be lost, so everything is purged.
    for machine in [first, second] {
      try await eventually { machine.applied.contains(.everything) }
      try await machine.whenSynchronised()
    }
    try await eventually { first.fleet.figures.purgesWaiting == 0 }
    try await first.fleet.purge(.tag("b"))
    try await eventually { second.applied.contains(.tag("b")) }
  }

  @Test func `a machine that missed trimmed entries purges everything`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    await second.fleet.stop()
    for tag in ["a", "b", "c"] { try await first.fleet.purge(.tag(tag)) }
    try server.command("XTRIM", "pictor:purges", "MAXLEN", "1")
    let again = try await machine(1)
    #expect(again.applied.first == .everything)
  }

  @Test func `a Redis that lost its last entries begins a new epoch`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    try await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    // Both have applied more than the stream has: as after a power failure without a synced file.
    await first.fleet.stop()
    await second.fleet.stop()
    let files = FleetFiles(folder: folders[0].path)
    let applied = try #require(files.readPosition())
    try files.write(
      AppliedPosition(
        epoch: applied.epoch,
        position: StreamPosition(milliseconds: applied.position.milliseconds + 1, number: 0)))
    let again = try await machine(0)
    #expect(again.applied == [.everything])
    let other = try await machine(1)
    #expect(other.applied == [.everything])
  }

  @Test func `an epoch that comes back does not bring back what was purged after it`() async throws
  {
    let key = CacheKey(text: "https://example.com/a.jpg w=20")
    let url = try SourceURL(parsing: "https://example.com/a.jpg")
    // Given a shared entry, a machine that is away, and a copy of Redis' data
    let first = try await machine(0)
    let second = try await machine(1)
    await second.fleet.stop()
    let mark = try #require(first.fleet.mark)
    func restore(_ from: String, _ to: String) throws {
      for name in ["epoch", "purges"] {
        try server.command("COPY", from + name, to + name, "REPLACE")
      }
    }
    try restore("pictor:", "kept:")
    // When the entry is purged, Redis loses its data, and the copy is back after it is noticed
    try await first.fleet.purge(.url(url))
    #expect(!first.fleet.stream.allows(key, mark: mark))
    try server.command("DEL", "pictor:epoch", "pictor:purges")
    try await eventually { first.applied == [.everything] }
    try await first.whenSynchronised()
    #expect(try #require(first.fleet.mark).epoch != mark.epoch)
    try restore("kept:", "pictor:")
    // Then an epoch begins that neither has known, after a restart too
    try await eventually { first.applied == [.everything, .everything] }
    try await first.whenSynchronised()
    #expect(try #require(first.fleet.mark).epoch != mark.epoch)
    #expect(!first.fleet.stream.allows(key, mark: mark))
    await first.fleet.stop()
    try restore("kept:", "pictor:")
    let again = try await machine(0)
    #expect(!again.fleet.stream.allows(key, mark: mark))
    // And the machine that was away purges everything
    #expect(try await machine(1).applied == [.everything])
  }

  @Test func `a lost entry is noticed although later ones came`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    try await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    await second.fleet.stop()
    // As after a crash: Redis is without the last entry, and another machine's is later.
    let files = FleetFiles(folder: folders[1].path)
    let applied = try #require(files.readPosition())
    #expect(try server.command("XDEL", "pictor:purges", "\(applied.position)") == ":1\r\n")
    try await first.fleet.purge(.tag("b"))
    #expect(try await machine(1).applied == [.everything])
    // For all, since others may have missed the lost one.
    try await eventually { first.applied == [.everything] }
  }

  @Test func `an acknowledged purge that Redis lost is delivered again`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    // Given a machine whose reader is busy, and whose purge no machine has read
    try await second.fleet.purge(.tag("wait"))
    try await eventually { first.waiting.value == 1 }
    try await eventually { second.fleet.stream.history.withLock { $0.own.acknowledged.isEmpty } }
    await second.fleet.stop()
    try await first.fleet.purge(.tag("a"))
    #expect(first.fleet.figures.purgesPublished == 1)
    // When Redis loses it
    let newest = try server.command("XREVRANGE", "pictor:purges", "+", "-", "COUNT", "1")
    let position = try #require(
      newest.split(separator: "\r\n").first { StreamPosition(String($0)) != nil })
    #expect(try server.command("XDEL", "pictor:purges", String(position)) == ":1\r\n")
    let before = first.fleet.figures.failures
    try server.command("CLIENT", "KILL", "TYPE", "normal")
    // And has other connections before its reader continues
    try await eventually {
      first.fleet.figures.failures >= before + 2 && first.fleet.figures.connected == true
    }
    first.gate.open()
    // Then the others get it nevertheless
    try await eventually { first.fleet.stream.history.withLock { $0.own.acknowledged.isEmpty } }
    #expect(first.fleet.figures.purgesPublished == 2)
    #expect(try await machine(1).applied == [.tag("a")])
  }

  @Test func `entries that were trimmed unread refuse what they may have purged`() async throws {
    let key = CacheKey(text: "https://example.com/a.jpg w=20")
    let url = try SourceURL(parsing: "https://example.com/a.jpg")
    let first = try await machine(0)
    let second = try await machine(1)
    // Given a machine that reads nothing more, and a mark of that time
    try await second.fleet.purge(.tag("wait"))
    try await eventually { first.waiting.value == 1 }
    let mark = try #require(first.fleet.mark)
    #expect(first.fleet.stream.allows(key, mark: mark))
    // When purges are trimmed before it reads them
    try await second.fleet.purge(.url(url))
    for tag in ["b", "c"] { try await second.fleet.purge(.tag(tag)) }
    try server.command("XTRIM", "pictor:purges", "MAXLEN", "1")
    first.gate.open()
    // Then everything is purged, and shared entries of before are refused
    try await eventually { first.applied.contains(.everything) }
    try await first.whenSynchronised()
    #expect(!first.fleet.stream.allows(key, mark: mark))
    #expect(
      try first.fleet.stream.allows(
        key, mark: #require(first.fleet.mark)))
  }
}
