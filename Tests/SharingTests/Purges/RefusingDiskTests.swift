// RefusingDiskTests: machines whose disk takes nothing follow the stream and lose nothing.

import Core
import Glibc
import TestSupport
import Testing

@testable import Sharing

@Suite(.onOwnThreads) final class RefusingDiskTests: PurgingMachines {
  /// A folder in place of the temporary file makes each write of a file fail, also for root.
  private func refuse(_ name: String, in folder: TemporaryFolder) {
    mkdir("\(folder.path)/\(name).new", 0o700)
  }

  private func permit(_ name: String, in folder: TemporaryFolder) {
    rmdir("\(folder.path)/\(name).new")
  }

  @Test func `purges that are not durable are in force once, and the file stays before them`()
    async throws
  {
    let first = try await machine(0)
    let second = try await machine(1)
    let files = FleetFiles(folder: folders[1].path)
    let before = files.readPosition()
    let mark = second.fleet.mark
    second.isFull.withLock { $0 = true }
    for tag in ["a", "b"] { try await first.fleet.purge(.tag(tag)) }
    try await eventually { second.applied == [.tag("a"), .tag("b")] }
    try await second.whenSynchronised()
    #expect(second.fleet.mark != mark && files.readPosition() == before)
    // A machine that ends now applies them again.
    await second.fleet.stop()
    let again = try await machine(1)
    #expect(again.applied == [.tag("a"), .tag("b")])
  }

  @Test func `an own purge that is not durable keeps the file before it`() async throws {
    let first = try await machine(0)
    let second = try await machine(1)
    let files = FleetFiles(folder: folders[0].path)
    let before = files.readPosition()
    first.isFull.withLock { $0 = true }
    try await first.fleet.purge(.tag("a"), isDurable: false)
    try await second.fleet.purge(.tag("b"))
    try await eventually { first.applied == [.tag("b")] }
    #expect(files.readPosition() == before)
    first.isFull.withLock { $0 = false }
    try await eventually { files.readPosition() == first.fleet.stream.applied.withLock { $0 } }
  }

  @Test func `once the disk takes them the position is written, and nothing is applied again`()
    async throws
  {
    let first = try await machine(0)
    let second = try await machine(1)
    let files = FleetFiles(folder: folders[1].path)
    let before = files.readPosition()
    second.isFull.withLock { $0 = true }
    try await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    second.isFull.withLock { $0 = false }
    // The stream's own position comes after the purge.
    try await eventually {
      let position = files.readPosition()
      return position != before && position == second.fleet.stream.applied.withLock { $0 }
    }
    await second.fleet.stop()
    #expect(second.applied == [.tag("a")])
    #expect(try await machine(1).applied == [])
  }

  @Test func `a new machine without room for its position follows the stream`() async throws {
    refuse("fleet-position", in: folders[1])
    let first = try await machine(0)
    let second = try await machine(1)
    try await first.fleet.purge(.tag("a"))
    try await eventually { second.applied == [.tag("a")] }
    // Another epoch is one purge of everything.
    try server.command("DEL", "pictor:epoch", "pictor:purges")
    try await eventually { second.applied == [.tag("a"), .everything] }
    try await second.whenSynchronised()
    try await first.fleet.purge(.tag("b"))
    try await eventually { second.applied == [.tag("a"), .everything, .tag("b")] }
    let files = FleetFiles(folder: folders[1].path)
    #expect(files.readPosition() == nil)
    permit("fleet-position", in: folders[1])
    try await eventually { files.readPosition() == second.fleet.stream.applied.withLock { $0 } }
  }

  @Test func `a purge that neither Redis nor the disk takes is an error, and is written later`()
    async throws
  {
    var first: PurgingMachine? = try await machine(0)
    let second = try await machine(1)
    server.kill()
    try await eventually { first?.fleet.client.isReady == false }
    refuse("fleet-purges", in: folders[0])
    for _ in 0..<2 {
      await #expect(throws: ImageError.self) { try await first?.fleet.purge(.tag("a")) }
    }
    #expect(first?.fleet.figures.purgesWaiting.whole == 1)
    // When the disk takes it, it outlives the machine.
    permit("fleet-purges", in: folders[0])
    let files = FleetFiles(folder: folders[0].path)
    try await eventually { files.readPurges() == [.tag("a")] }
    await first?.fleet.stop()
    first = nil
    try server.start()
    _ = try await machine(0)
    try await eventually { second.applied == [.tag("a")] }
  }

  @Test func `purges that wait are in their file in order, each scope once`() async throws {
    let first = try await machine(0)
    server.kill()
    try await eventually { !first.fleet.client.isReady }
    let files = FleetFiles(folder: folders[0].path)
    for number in 0..<20 { try await first.fleet.purge(.tag("\(number % 15)")) }
    #expect(files.readPurges() == (5..<20).map { .tag("\($0 % 15)") })
    // One of everything stands for all.
    try await first.fleet.purge(.everything)
    #expect(files.readPurges() == [.everything])
    try await first.fleet.purge(.tag("x"))
    #expect(files.readPurges() == [.everything])
    try server.start()
    try await eventually { files.readPurges() == [] && first.fleet.figures.purgesWaiting == 0 }
  }
}
