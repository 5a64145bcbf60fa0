// SharedVariantTests: real programs that share variants through a real Redis.

import FoundationEssentials
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SharedVariantTests {
  private let server: RedisServer
  private let origin: Origin
  private let folders: [TemporaryFolder]

  init() throws {
    server = try RedisServer(["--appendonly", "yes"])
    origin = try Origin()
    folders = try (0..<3).map { _ in try TemporaryFolder() }
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
  }

  private func start(_ number: Int, _ options: [String] = []) throws -> PictorProcess {
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

  private func stats(_ pictor: PictorProcess) throws -> Stats {
    try JSONDecoder().decode(Stats.self, from: Data(try pictor.connect().get("/stats").body))
  }

  private func figures(_ pictor: PictorProcess) throws -> FleetFigures {
    try #require(try stats(pictor).fleet)
  }

  private func get(_ pictor: PictorProcess) throws -> HTTPAnswer {
    try pictor.connect().get("/image?url=\(encoded(origin.url("/a.jpg")))&w=20")
  }

  private func status(_ pictor: PictorProcess) throws -> String {
    try get(pictor)["Cache-Status"] ?? ""
  }

  private func share(from pictor: PictorProcess) throws -> HTTPAnswer {
    let answer = try get(pictor)
    #expect(answer["Cache-Status"]?.contains("fwd=uri-miss") == true)
    try blockUntil("the variant is written") { try figures(pictor).stores == 1 }
    return answer
  }

  @Test func `a variant of one machine is a hit on another, without download or render`() throws {
    let first = try start(0)
    let second = try start(1)
    let rendered = try share(from: first)
    let shared = try get(second)
    #expect(shared["Cache-Status"]?.contains("hit; detail=shared") == true)
    #expect(shared.body == rendered.body && shared["ETag"] == rendered["ETag"])
    #expect(try stats(second).downloads.succeeded == 0)
    // It is in this machine's tiers now, and was not written again.
    #expect(try status(second).contains("detail=memory"))
    #expect(try figures(second).stores == 0 && figures(second).hits == 1)
  }

  @Test func `an entry of before a purge is refused by the machine that purged`() throws {
    let first = try start(0)
    _ = try share(from: first)
    let second = try start(1)
    let purged = try second.operate(
      "DELETE", target: "/admin/cache?url=\(encoded(origin.url("/a.jpg")))")
    #expect(purged.status == 200)
    // The entry is in Redis still, with its old position.
    #expect(try status(second).contains("fwd=uri-miss"))
    #expect(try figures(second).refused == 1)
  }

  @Test func `an entry of before a purge is refused by a machine that starts after it`() throws {
    let first = try start(0)
    _ = try share(from: first)
    let name = try #require(
      try server.command("KEYS", "pictor:v:*").split(separator: "\r\n").last.map(String.init))
    try server.command("COPY", name, "kept")
    let purged = try first.operate(
      "DELETE", target: "/admin/cache?url=\(encoded(origin.url("/a.jpg")))")
    #expect(purged.status == 200, "\(purged.text)")
    #expect(try first.end() == 0)
    // As if a machine that was away had written it now.
    try server.command("COPY", "kept", name, "REPLACE")
    let second = try start(1)
    #expect(try status(second).contains("fwd=uri-miss"))
    #expect(try figures(second).refused == 1)
  }

  @Test func `garbage in Redis is a miss`() throws {
    let first = try start(0)
    _ = try share(from: first)
    let name = try #require(
      try server.command("KEYS", "pictor:v:*").split(separator: "\r\n").last.map(String.init))
    try server.command("SETRANGE", name, "150", "garbage")
    let second = try start(1)
    #expect(try status(second).contains("fwd=uri-miss"))
    #expect(try figures(second).refused == 1)
    #expect(try figures(second).hits == 0)
  }

  @Test func `a frozen Redis costs one command, and images are served`() throws {
    let first = try start(0, ["--fleet.timeout", "50ms", "--fleet.retry_interval", "60s"])
    for number in 0..<10 {
      origin.serve("/\(number).jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    }
    server.freeze()
    let before = try figures(first)
    for number in 0..<10 {
      let answer = try first.connect().get(
        "/image?url=\(encoded(origin.url("/\(number).jpg")))&w=20")
      #expect(answer.status == 200)
    }
    let after = try figures(first)
    server.thaw()
    // One look-up, and what may come between: a read of the stream (two commands), and the question for the policy.
    #expect(after.commands - before.commands <= 4)
    // On a slow machine, the read of the stream is late as well.
    #expect((1...3).contains(after.timedOut))
  }
}
