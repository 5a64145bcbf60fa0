// FleetLeaseTests: real programs that make each image once, and lose no request when one of them or Redis dies.

import Glibc
import Platform
import TestSupport
import Testing

@Suite(.onOwnThreads) struct FleetLeaseTests {
  private static let images = 50

  private let machines: FleetMachines

  init() throws {
    machines = try FleetMachines()
    for number in 0..<Self.images {
      machines.origin.serve("/\(number).jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    }
  }

  /// All machines are asked for all images at the same time, each twice. Returns the statuses of the answers.
  private func ask(
    _ pictors: [PictorProcess], while others: @escaping @Sendable () -> Void = {}
  ) async -> [Int] {
    await withTaskGroup(of: [Int].self) { group in
      for (number, pictor) in pictors.enumerated() {
        for half in 0..<2 {
          let origin = machines.origin
          group.addTask {
            let threads = BlockingThreads(name: "client", threads: 1, deadline: .seconds(60))
            let statuses = try? await threads.value {
              // Another order on each, so that each holds some leases.
              (0..<Self.images).map { step in
                let image = (step * (1 + 2 * half) + number * 17) % Self.images
                return
                  (try? pictor.connect().get(
                    "/image?url=\(encoded(origin.url("/\(image).jpg")))&w=20"))?.status ?? 0
              }
            }
            return statuses ?? []
          }
        }
      }
      others()
      return await group.reduce(into: []) { $0 += $1 }
    }
  }

  @Test func `three machines download and render each image once`() async throws {
    let pictors = try (0..<3).map { try machines.start($0, ["--fleet.lease_wait", "60s"]) }
    let statuses = await ask(pictors)
    #expect(statuses.count == 6 * Self.images && statuses.allSatisfy { $0 == 200 })
    // Variants are written behind the answers. One may be written again without a download.
    try await eventually("all is written") {
      let fleets = try pictors.map { try #require(try machines.stats($0).fleet) }
      return fleets.allSatisfy { $0.leasesHeld == 0 }
        && fleets.reduce(0) { $0 + $1.stores } >= Self.images
    }
    let stats = try pictors.map { try machines.stats($0) }
    // A machine that gets no processor for seconds cannot renew its leases: each that it loses may cost a download.
    let lost = stats.reduce(0) { $0 + ($1.fleet?.leasesLost ?? 0) }
    let downloads = stats.reduce(0) { $0 + $1.downloads.succeeded }
    #expect((Self.images...(Self.images + lost)).contains(downloads))
    let renders = stats.reduce(0) { $0 + $1.imaging.succeeded }
    #expect((Self.images...(Self.images + lost)).contains(renders))
    #expect(stats.allSatisfy { $0.fleet?.leasesTimedOut == 0 })
  }

  @Test func `a machine that is killed under load loses no request of the others`() async throws {
    let pictors = try (0..<3).map { try machines.start($0) }
    let victim = pictors[2]
    let load = BlockingThreads(name: "victim", threads: 1, deadline: .seconds(60))
    async let ended: Void? = try? load.value {
      for image in 0..<10 {
        _ = try? victim.connect().get(
          "/image?url=\(encoded(machines.origin.url("/\(image).jpg")))&w=20")
      }
      _ = try? victim.end(SIGKILL)
    }
    let statuses = await ask(Array(pictors.prefix(2)))
    _ = await ended
    #expect(statuses.count == 4 * Self.images && statuses.allSatisfy { $0 == 200 })
  }

  @Test func `Redis that is killed under load loses no request`() async throws {
    let pictors = try (0..<3).map { try machines.start($0) }
    let statuses = await ask(pictors) { [server = machines.server] in server.kill() }
    #expect(statuses.count == 6 * Self.images && statuses.allSatisfy { $0 == 200 })
  }
}
