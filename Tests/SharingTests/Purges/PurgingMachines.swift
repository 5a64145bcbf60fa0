// PurgingMachines: machines that share purges by a real Redis, and note what they apply.

import Caching
import Core
import TestSupport
import Testing

@testable import Sharing

/// A machine that notes what it applies.
final class PurgingMachine: Sendable {
  let fleet: Fleet
  private let purges = Lock<[PurgeScope]>([])
  /// Whether its disk refuses to make purges durable.
  let isFull = Lock(false)
  /// At which purges of the tag `wait` wait.
  let gate = Gate()
  let waiting = Counter()

  init(_ server: RedisServer, in folder: TemporaryFolder?) throws {
    var settings = FleetSettings()
    settings.timeout = .seconds(10)
    settings.retryInterval = .milliseconds(20)
    let address = try #require(RedisAddress(server.address))
    fleet = try Fleet(
      FleetConfiguration(address: address, settings: settings, folder: folder?.path),
      coding: StoredVariantCoding(memory: .unlimited), log: .silent)
    @Sendable func checkDisk() throws(ImageError) {
      if isFull.withLock({ $0 }) { throw .internal(detail: "a full disk") }
    }
    fleet.start(recording: { () throws(ImageError) in try checkDisk() }) {
      [purges, gate, waiting] scope throws(ImageError) in
      if scope == .tag("wait") {
        waiting.add()
        await gate.pass()
      }
      purges.withLock { $0.append(scope) }
      try checkDisk()
    }
  }

  deinit { Task { [fleet] in await fleet.stop() } }

  /// What other machines purged here.
  var applied: [PurgeScope] { purges.withLock { $0 } }

  func whenSynchronised() async throws {
    try await eventually("the machine has read the stream") {
      fleet.stream.isSynchronised && fleet.client.isReady
    }
  }
}

/// Machines that share purges by one Redis. The base of test suites.
class PurgingMachines {
  let server: RedisServer
  let folders: [TemporaryFolder]

  init() throws {
    server = try RedisServer(["--appendonly", "yes", "--appendfsync", "always"])
    folders = try (0..<3).map { _ in try TemporaryFolder() }
  }

  func machine(_ number: Int) async throws -> PurgingMachine {
    let machine = try PurgingMachine(server, in: folders[number])
    try await machine.whenSynchronised()
    return machine
  }
}

extension Fleet {
  /// Publishes a purge as the manager does.
  func purge(_ scope: PurgeScope, isDurable: Bool = true) async throws(ImageError) {
    try await publish(scope, number: beginPurge(scope), isDurable: isDurable)
  }
}
