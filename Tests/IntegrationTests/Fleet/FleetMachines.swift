// FleetMachines: real programs that share one real Redis, with an origin.

import Core
import FoundationEssentials
import TestSupport
import Testing

/// Machines of one fleet, whose disks outlive them, and an origin with `/a.jpg`.
struct FleetMachines {
  let server: RedisServer
  let origin: Origin
  private let folders: [TemporaryFolder]

  init() throws {
    server = try RedisServer(["--appendonly", "yes"])
    origin = try Origin()
    folders = try (0..<3).map { _ in try TemporaryFolder() }
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
  }

  /// The folder of a machine.
  func folder(_ number: Int) -> TemporaryFolder { folders[number] }

  /// Starts a machine, and waits until it has read the purge stream.
  func start(_ number: Int, _ options: [String] = []) throws -> PictorProcess {
    let pictor = try PictorProcess(
      in: folders[number],
      PictorProcess.operated + [
        "--fleet.redis", server.address, "--fleet.timeout", "10s", "--fleet.retry_interval", "20ms",
      ] + options)
    try blockUntil("the machine has read the stream") {
      try figures(pictor).positionAgeSeconds >= 0
    }
    return pictor
  }

  /// Waits until a machine has read the purge stream to its end, from now on. Before, its own
  /// purges refuse all shared entries that they cover, later ones as well.
  func waitUntilRead(by pictor: PictorProcess) throws {
    let start = ContinuousClock.now
    try blockUntil("the machine has read the stream") {
      let asked = ContinuousClock.now
      let age = try figures(pictor).positionAgeSeconds.number ?? -1
      return age >= 0 && .seconds(age) < asked - start
    }
  }

  func stats(_ pictor: PictorProcess) throws -> Figures {
    try JSONDecoder().decode(Figures.self, from: Data(try pictor.connect().get("/stats").body))
  }

  func figures(_ pictor: PictorProcess) throws -> Figure {
    try stats(pictor).fleet
  }

  /// Asks for `/a.jpg` in another size.
  func get(_ pictor: PictorProcess, width: Int = 20) throws -> HTTPAnswer {
    try pictor.connect().get("/image?url=\(encoded(origin.url("/a.jpg")))&w=\(width)")
  }

  func cacheStatus(_ pictor: PictorProcess) throws -> String {
    try get(pictor)["Cache-Status"] ?? ""
  }

  /// Purges `/a.jpg`.
  func purge(_ pictor: PictorProcess) throws {
    let answer = try pictor.operate(
      "DELETE", target: "/admin/cache?url=\(encoded(origin.url("/a.jpg")))")
    #expect(answer.status == 200, "\(answer.text)")
  }
}
