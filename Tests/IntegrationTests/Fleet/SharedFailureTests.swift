// SharedFailureTests: real programs that share failed URLs through a real Redis.

import Platform
import TestSupport
import Testing

@Suite(.onOwnThreads) struct SharedFailureTests {
  private let machines: FleetMachines
  private var server: RedisServer { machines.server }
  private var origin: Origin { machines.origin }

  init() throws { machines = try FleetMachines() }

  private func get(
    _ pictor: PictorProcess, _ path: String, _ parameters: String = "&w=20"
  ) throws -> HTTPAnswer {
    try pictor.connect().get("/image?url=\(encoded(origin.url(path)))\(parameters)")
  }

  private func fail(_ path: String, on pictor: PictorProcess, status: Int = 404) throws {
    let before = try machines.figures(pictor).failedURLsShared
    #expect(try get(pictor, path).status == status)
    try blockUntil("the failure is shared") {
      try machines.figures(pictor).failedURLsShared == before + 1
    }
  }

  @Test func `a 404 of one machine is answered by another as its own, without the origin`() throws {
    let first = try machines.start(0)
    let second = try machines.start(1)
    try fail("/none.jpg", on: first)
    let local = try get(first, "/none.jpg")
    // Another size, another format and no size: it is the source that fails.
    for parameters in ["&w=20", "&w=30", "&format=webp", ""] {
      let answer = try get(second, "/none.jpg", parameters)
      #expect(answer.status == 404)
      #expect(answer["Cache-Status"] == local["Cache-Status"])
      #expect(answer["Cache-Status"]?.contains("hit; detail=failed-url") == true)
      let age = try #require(
        answer["Cache-Control"]?.split(separator: "=").last.flatMap { Int($0) })
      #expect((1...600).contains(age))
    }
    #expect(origin.requests(to: "/none.jpg") == 1)
    let listed = try second.operate("GET", target: "/admin/failed").text
    #expect(listed.contains("none.jpg"), "\(listed)")
    // Found once, then its own.
    #expect(try machines.figures(second).failedURLsFound == 1)
    #expect(try machines.figures(second).failedURLsShared == 0)
    #expect(try machines.figures(second).leasesTaken == 0)
  }

  @Test func `a source that no machine can decode is downloaded once`() throws {
    origin.serve("/text.jpg", bytes: Array("no image at all".utf8))
    let first = try machines.start(0)
    let second = try machines.start(1)
    try fail("/text.jpg", on: first, status: 415)
    let answer = try get(second, "/text.jpg")
    #expect(answer.status == 415)
    #expect(answer["Cache-Status"]?.contains("detail=failed-url") == true)
    #expect(origin.requests(to: "/text.jpg") == 1)
    let plan = try second.operate(
      "GET", target: "/admin/explain?url=\(encoded(origin.url("/text.jpg")))&w=20")
    #expect(plan.text.contains("unsupported_format"), "\(plan.text)")
  }

  @Test(arguments: [
    "/admin/cache?url=URL", "/admin/failed?url=URL", "/admin/cache?host=127.0.0.1", "/admin/failed",
  ])
  func `a purge and a removal on another machine let both ask again`(target: String) throws {
    let first = try machines.start(0)
    let second = try machines.start(1)
    try fail("/none.jpg", on: first)
    #expect(try get(second, "/none.jpg").status == 404)
    #expect(origin.requests(to: "/none.jpg") == 1)
    let target = target.split(separator: "URL", omittingEmptySubsequences: false)
      .joined(separator: encoded(origin.url("/none.jpg")))
    #expect(try second.operate("DELETE", target: target).status == 200)
    try blockUntil("the other machine has applied it") {
      try machines.figures(first).purgesApplied == 1
    }
    // Before the first one asks, and tells again.
    #expect(try get(second, "/none.jpg").status == 404)
    #expect(origin.requests(to: "/none.jpg") == 2)
    origin.serve("/none.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    #expect(try first.operate("DELETE", target: "/admin/failed").status == 200)
    #expect(try get(first, "/none.jpg").status == 200)
  }

  @Test func `refresh and retry ask the origin, and the success of a retry is for all`() throws {
    let first = try machines.start(0)
    let second = try machines.start(1, ["--server.allow", "refresh,retry"])
    let third = try machines.start(2)
    try fail("/late.jpg", on: first)
    #expect(try get(second, "/late.jpg", "&w=20&refresh=1").status == 404)
    #expect(origin.requests(to: "/late.jpg") == 2)
    origin.serve("/late.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    #expect(try get(second, "/late.jpg", "&w=20&retry=1").status == 200)
    try blockUntil { try server.command("KEYS", "pictor:f:*") == "*0\r\n" }
    #expect(try get(third, "/late.jpg", "&w=30").status == 200)
  }

  @Test func `a machine that has the image still serves it, and asks the origin itself`() throws {
    let first = try machines.start(0, ["--fleet.variant_limit", "0"])
    let second = try machines.start(1, ["--fleet.variant_limit", "0"])
    #expect(try machines.get(second).status == 200)
    origin.route("/a.jpg", to: .status(404))
    try fail("/a.jpg", on: first)
    #expect(try machines.get(second).status == 200)
    #expect(try machines.get(second, width: 30).status == 200)
    #expect(try machines.figures(second).failedURLsFound >= 1)
    #expect(try second.operate("GET", target: "/admin/failed").text.contains("a.jpg") == false)
  }

  @Test func `trouble of one machine stays there`() throws {
    origin.route("/busy.jpg", to: .status(503))
    let first = try machines.start(0)
    let second = try machines.start(1)
    #expect(try get(first, "/busy.jpg").status == 502)
    origin.serve("/busy.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    #expect(try get(second, "/busy.jpg").status == 200)
    #expect(try machines.figures(first).failedURLsShared == 0)
    #expect(try machines.figures(first).failedURLsDropped == 0)
  }

  @Test func `a failure asked of all at once is one origin request`() async throws {
    let running = try (0..<3).map { try machines.start($0, ["--fleet.lease_wait", "60s"]) }
    let gate = Gate()
    origin.route("/slow.jpg", to: .hold(gate, then: .status(404)))
    let threads = BlockingThreads(name: "client", threads: 3, deadline: .seconds(120))
    let target = "/image?url=\(encoded(origin.url("/slow.jpg")))&w=20"
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for pictor in running {
        group.addTask {
          try await threads.value { (try? pictor.connect().get(target).status) ?? 0 }
        }
      }
      try await eventually("two machines wait") {
        try running.map { try machines.figures($0).leasesWaited }.reduce(0, +) == 2
      }
      gate.open()
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == [404, 404, 404])
    // A machine that gets no processor for seconds loses its lease.
    let lost = try running.map { try machines.figures($0).leasesLost }.reduce(0, +)
    #expect((1...1 + lost).contains(origin.requests(to: "/slow.jpg")))
  }

  @Test func `a failure whose notice is lost is one origin request`() async throws {
    let running = try (0..<2).map { try machines.start($0, ["--fleet.lease_wait", "60s"]) }
    let gate = Gate()
    origin.route("/slow.jpg", to: .hold(gate, then: .status(404)))
    let threads = BlockingThreads(name: "client", threads: 2, deadline: .seconds(120))
    let target = "/image?url=\(encoded(origin.url("/slow.jpg")))&w=20"
    let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
      for pictor in running {
        group.addTask {
          try await threads.value { (try? pictor.connect().get(target).status) ?? 0 }
        }
      }
      try await eventually("one machine waits") {
        try running.map { try machines.figures($0).leasesWaited }.reduce(0, +) == 1
      }
      gate.open()
      // The machine that waits takes the lease by polling: nobody is told that it waits.
      let forget = "for _,k in ipairs(redis.call('KEYS','pictor:w:*')) do redis.call('DEL',k) end"
      try await eventually("the failure is shared") {
        try server.command("EVAL", forget, "0")
        return try server.command("KEYS", "pictor:f:*") != "*0\r\n"
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(statuses == [404, 404])
    let lost = try running.map { try machines.figures($0).leasesLost }.reduce(0, +)
    #expect((1...1 + lost).contains(origin.requests(to: "/slow.jpg")))
  }

  @Test func `with another limit, and without fleet.failures, machines ask the origin`() throws {
    let first = try machines.start(0)
    let second = try machines.start(1, ["--download.maximum_bytes", "12345678"])
    let third = try machines.start(2, ["--fleet.failures", "false"])
    try fail("/none.jpg", on: first)
    for pictor in [second, third] { #expect(try get(pictor, "/none.jpg").status == 404) }
    #expect(origin.requests(to: "/none.jpg") == 3)
  }
}
