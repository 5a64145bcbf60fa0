// HeldBytesTests: the bytes that the real program holds for slow readers and waiting jobs.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class HeldBytesTests: OriginSuite {
  @Test func `slow readers hold no more memory than allowed, and get every byte`() throws {
    // Given a server with memory for twenty of thirty results, each larger than what sockets buffer
    var random = SeededGenerator(seed: 14)
    let noise = CodedPNG(
      size: PixelSize(width: 600, height: 600), colorType: 0, depth: 8,
      samples: (0..<360_000).map { _ in Int.random(in: 0...255, using: &random) })
    origin.serve("/a.png", bytes: noise.bytes)
    let (tier, budget) = (5 << 20, 8 << 20)
    let rest = budget / 7 * 10 / 16
    let pictor = try PictorProcess(
      in: folder,
      [
        "--memory.limit", "\(tier)", "--memory.budget", "\(budget)",
        "--download.maximum_bytes", "1MiB",
      ])
    let targets = (0..<30).map { origin.target("/a.png", adding: "&format=png&w=\(500 + $0)") }
    // When clients ask for different sizes and read nothing
    let clients = try targets.map { target in
      let client = try HTTPClient(port: pictor.port, timeout: 60, receiveBuffer: 4_096)
      try client.send(HTTPClient.text("GET", target: target))
      return client
    }
    try pictor.waitFor("all are rendered") { $0.imaging.succeeded == targets.count }
    // Then what they hold in memory is limited, and the rest is in files without a name
    let stats = try pictor.stats()
    #expect(stats.budgets.variants.limit == tier + rest)
    #expect((tier / 2)...(tier + rest) ~= stats.budgets.variants.peak.whole)
    #expect(stats.budgets.files.bytes > 0)
    // And each gets its image
    for (client, target) in zip(clients, targets) {
      let answer = try client.readAnswer()
      #expect(answer.status == 200 && answer["content-type"] == "image/png")
      #expect(answer.body.count > 200_000)
      #expect(try pictor.get(target).body == answer.body)
    }
    try pictor.waitFor("the files are gone") { $0.budgets.files.bytes == 0 }
  }

  @Test func `bodies that wait for a worker hold no more memory than allowed`() throws {
    // Given one worker, and memory for three of twelve bodies
    let body = try TestImages.png(width: 400, height: 300)
    let limit = 3 * body.count + 1_000
    let pictor = try PictorProcess(
      in: folder,
      [
        "--imaging.workers", "1", "--download.maximum_bytes", "\(limit)",
        "--memory.budget", "\(limit * 56 / 10)", "--memory.limit", "0",
      ])
    let paths = (0..<12).map { "/\($0).png" }
    for path in paths { origin.serve(path, bytes: body) }
    // When
    let clients = try paths.map { path in
      let client = try pictor.connect(timeout: 60)
      try client.send(
        HTTPClient.text("GET", target: origin.target(path, adding: "&format=webp")))
      return client
    }
    // Then
    for client in clients { #expect(try client.readAnswer().status == 200) }
    let bodies = try pictor.stats().budgets.bodies
    #expect(bodies.limit == limit && bodies.peak <= limit && bodies.peak >= body.count)
    // The disk tier may still be writing the last ones.
    try pictor.waitFor("all is returned") { $0.budgets.bodies.bytes == 0 }
  }

  @Test func `an upload without room in memory is refused, and the next one is stored`() throws {
    // Given memory for two uploads, and one that is under way
    let body = try TestImages.png(width: 200, height: 150)
    let limit = 2 * body.count + 32_000
    let pictor = try PictorProcess(
      in: folder,
      [
        "--admin.tokens", "secret-token-of-operators", "--memory.limit", "0",
        "--memory.budget", "\(limit * 56 / 10)", "--download.maximum_bytes", "\(limit)",
      ])
    func begin(
      _ name: String, _ bytes: [UInt8], of length: Int = body.count
    ) throws -> HTTPClient {
      let client = try pictor.connect()
      try client.send(
        HTTPClient.text(
          "PUT", target: "/admin/cache?url=https://a.example/\(name).png",
          headers: [
            "Authorization": "Bearer secret-token-of-operators",
            "Content-Length": "\(length)", "Content-Type": "image/png",
          ]))
      try client.send(bytes: bytes)
      return client
    }
    let first = try begin("a", body.dropLast())
    try pictor.waitFor("it holds memory") { $0.budgets.bodies.bytes >= body.count - 1 }
    // Then
    let larger = body + [UInt8](repeating: 0, count: 40_000)
    #expect(try begin("b", larger, of: larger.count).readAnswer().status == 503)
    try first.send(bytes: body.suffix(1))
    #expect(try first.readAnswer().status < 300)
    try pictor.waitFor("it is written") { $0.budgets.bodies.bytes == 0 }
    #expect(try begin("b", body).readAnswer().status < 300)
  }
}
