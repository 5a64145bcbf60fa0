// SharedVariantTests: real programs that share variants through a real Redis.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SharedVariantTests {
  private let machines: FleetMachines
  private var server: RedisServer { machines.server }

  init() throws { machines = try FleetMachines() }

  private func share(from pictor: PictorProcess) throws -> HTTPAnswer {
    let answer = try machines.get(pictor)
    #expect(answer["Cache-Status"]?.contains("fwd=uri-miss") == true)
    try blockUntil("the variant is written") { try machines.figures(pictor).stores == 1 }
    return answer
  }

  @Test func `a variant of one machine is a hit on another, without download or render`() throws {
    let first = try machines.start(0)
    let second = try machines.start(1)
    let rendered = try share(from: first)
    let shared = try machines.get(second)
    #expect(shared["Cache-Status"]?.contains("hit; detail=shared") == true)
    #expect(shared.body == rendered.body && shared["ETag"] == rendered["ETag"])
    #expect(try machines.stats(second).downloads.succeeded == 0)
    // It is in this machine's tiers now, and was not written again.
    #expect(try machines.cacheStatus(second).contains("detail=memory"))
    #expect(try machines.figures(second).stores == 0 && machines.figures(second).hits == 1)
  }

  @Test(arguments: [
    ("max-age=600", 600), ("max-age=600, stale-while-revalidate=30, stale-if-error=90", 600),
    ("max-age=20", 20),
  ])
  func `a variant's time in Redis follows its freshness`(control: String, seconds: Int) throws {
    machines.origin.serve(
      "/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40),
      headers: ["Cache-Control: \(control)"])
    let first = try machines.start(0)
    _ = try share(from: first)
    let name = try #require(
      try server.command("KEYS", "pictor:v:*").split(separator: "\r\n").last.map(String.init))
    let reply = try server.command("PTTL", name)
    let milliseconds = try #require(Int(reply.dropFirst().filter(\.isNumber)))
    // A test that waits for the processor for ten seconds is not seen as a fault.
    #expect((((seconds - 10) * 1_000)...(seconds * 1_000)).contains(milliseconds), "\(reply)")
  }

  @Test(arguments: ["no-cache", "max-age=0", "no-store"])
  func `what is never fresh is not shared`(control: String) throws {
    let bytes = try TestImages.jpeg(width: 60, height: 40)
    machines.origin.route("/a.jpg") { _ in .ok(bytes, headers: ["Cache-Control: \(control)"]) }
    for number in 0..<2 {
      let pictor = try machines.start(number)
      #expect(try machines.get(pictor).status == 200)
      #expect(try machines.figures(pictor).stores == 0)
    }
    #expect(machines.origin.received(at: "/a.jpg").count == 2)
  }

  @Test func `an entry of before a purge is refused by the machine that purged`() throws {
    let first = try machines.start(0)
    _ = try share(from: first)
    let second = try machines.start(1)
    try machines.purge(second)
    // The entry is in Redis still, with its old position.
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try machines.figures(second).refused == 1)
  }

  @Test func `an entry of before a purge is refused by a machine that starts after it`() throws {
    let first = try machines.start(0)
    _ = try share(from: first)
    let name = try #require(
      try server.command("KEYS", "pictor:v:*").split(separator: "\r\n").last.map(String.init))
    try server.command("COPY", name, "kept")
    try machines.purge(first)
    #expect(try first.end() == 0)
    // As if a machine that was away had written it now.
    try server.command("COPY", "kept", name, "REPLACE")
    let second = try machines.start(1)
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try machines.figures(second).refused == 1)
  }

  @Test func `an upload stays on its machine, after a restart too`() throws {
    let first = try machines.start(0)
    let second = try machines.start(1)
    let upload = try first.connect().request(
      "PUT", target: "/admin/cache?url=\(encoded(machines.origin.url("/a.jpg")))",
      headers: ["Authorization": "Bearer " + PictorProcess.token],
      body: try TestImages.png(width: 60, height: 40))
    #expect(upload.status == 201, "\(upload.text)")
    let own = try machines.get(first).body
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try machines.get(second).body != own)
    #expect(try machines.get(second, width: 30).status == 200)
    try blockUntil("both sizes are shared") { try machines.figures(second).stores == 2 }
    #expect(try machines.figures(first).stores == 0)
    #expect(try first.end() == 0)
    let again = try machines.start(0)
    let rendered = try machines.get(again, width: 30)
    #expect(rendered["Cache-Status"]?.contains("hit; detail=source") == true)
    #expect(try machines.get(again).body == own)
    #expect(try machines.figures(again).stores == 0)
  }

  @Test func `garbage in Redis is a miss`() throws {
    let first = try machines.start(0)
    _ = try share(from: first)
    let name = try #require(
      try server.command("KEYS", "pictor:v:*").split(separator: "\r\n").last.map(String.init))
    try server.command("SETRANGE", name, "150", "garbage")
    let second = try machines.start(1)
    #expect(try machines.cacheStatus(second).contains("fwd=uri-miss"))
    #expect(try machines.figures(second).refused == 1)
    #expect(try machines.figures(second).hits == 0)
  }

  @Test func `a frozen Redis costs a few look-ups, and images are served`() throws {
    let first = try machines.start(0, ["--fleet.timeout", "1s", "--fleet.retry_interval", "60s"])
    for number in 0..<10 {
      machines.origin.serve("/\(number).jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    }
    try blockUntil("the policy is known") { try server.calls(of: "config|get") >= 1 }
    server.freeze()
    let before = try machines.figures(first)
    for number in 0..<10 {
      let answer = try first.connect().get(
        "/image?url=\(encoded(machines.origin.url("/\(number).jpg")))&w=20")
      #expect(answer.status == 200)
    }
    let after = try machines.figures(first)
    server.thaw()
    // Of look-ups, and of the variants that are written meanwhile.
    #expect((3...9).contains(after.timedOut - before.timedOut))
    #expect(after.commands - before.commands <= 12)
  }
}
