// Prefetching over HTTP: the syntax of lists, their results, and what an operator sees.

import Model
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AdminPrefetchTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }

  @Test func `a prefetch loads valid lines, reports invalid ones and skips cached ones`() throws {
    // Given
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let image = try TestImages.jpeg(width: 60, height: 40)
    for path in ["/1.jpg", "/2.jpg", "/3.jpg"] { origin.serve(path, bytes: image) }
    let list = [
      origin.url("/1.jpg"), "# a comment", "no URL", "",
      "url=\(encoded(origin.url("/2.jpg")))&w=20", origin.url("/absent.jpg"),
      "/image?url=\(encoded(origin.url("/3.jpg")))&h=10", origin.url("/1.jpg"),
      "url=\(encoded(origin.url("/1.jpg")))&w=0",
    ]
    // When
    let began = try pictor.prefetch(list)
    let events: EventReader<PrefetchStatus> = try pictor.events(at: "/admin/prefetch/\(began.id)")
    let told = try events.events { $0.state != .running }
    // Then: the events end, and each line has a result
    #expect(try events.next() == nil)
    #expect(began.total == 7)
    let end = try #require(told.last)
    #expect(end.state == .finished && (end.finished, end.skipped, end.failed) == (3, 1, 3))
    #expect(
      end.reasons == ["invalid_url": 1, "source_not_found": 1, "invalid_parameter": 1],
      "\(end)")
    #expect(Set(end.failures.map(\.line)) == [3, 6, 9])
    #expect(end.rate > 0 && end.secondsLeft == 0)
    #expect(zip(told, told.dropFirst()).allSatisfy { $0.done <= $1.done })
    // Later requests are hits in memory.
    for (path, rest) in [("/1.jpg", ""), ("/2.jpg", "&w=20"), ("/3.jpg", "&h=10")] {
      let answer = try pictor.get(origin.target(path, adding: rest))
      #expect(answer["cache-status"] == "pictor; hit; detail=memory", "\(path)")
    }
    // And the same list again has no work left.
    let again = try pictor.prefetch(list)
    try pictor.waitFor("it has ended") { $0.prefetch.lists == 0 && $0.prefetch.skipped == 5 }
    #expect(try pictor.prefetchStatus(again.id).skipped == 4)
    let all = try pictor.operate("GET", target: "/admin/prefetch")
    #expect(all.text.contains(began.id) && all.text.contains(again.id))
  }

  @Test func `a list is requested once for each preset, each image once`() throws {
    let pictor = try PictorProcess(
      in: folder, PictorProcess.operated + ["--presets", "thumb=w=10,wide=w=30&h=5&fit=cover"])
    for path in ["/1.jpg", "/2.jpg"] {
      origin.serve(path, bytes: try TestImages.jpeg(width: 60, height: 40))
    }
    let began = try pictor.prefetch(
      ["/1.jpg", "/2.jpg"].map { origin.url($0) }, query: "?preset=thumb&preset=wide")
    #expect(began.total == 4)
    try pictor.waitFor("it is done") { $0.prefetch.finished == 4 }
    #expect(origin.totalRequests == 2)
    let answer = try pictor.get(origin.target("/2.jpg", adding: "&w=30&h=5&fit=cover"))
    #expect(answer["cache-status"] == "pictor; hit; detail=memory")
    let unknown = try pictor.operate("POST", target: "/admin/prefetch?preset=none", body: "")
    #expect(unknown.status == 400 && unknown.text.contains("one of thumb, wide"))
  }

  @Test
  func `a prefetch runs three low-priority loads at a time, one per host, until it is cancelled`()
    throws
  {
    // Given: images on five hosts that never respond
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let everywhere = try Origin(on: "0.0.0.0")
    everywhere.route("/a.jpg", to: .silence)
    origin.serve("/b.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let list = (1...5).flatMap { host in
      (0..<3).map { everywhere.url("/a.jpg?\($0)", host: "127.0.0.\(host)") }
    }
    // When
    let began = try pictor.prefetch(list)
    try blockUntil("three run") { everywhere.activeRequests == 3 }
    // Then
    let figures = try pictor.stats().prefetch
    #expect(figures.running == 3 && figures.waiting == 12)
    let downloads = try pictor.downloads()
    #expect(Set(downloads.map(\.host)).count == 3)
    #expect(downloads.allSatisfy { $0.priority == "low" })
    #expect(try pictor.get(origin.target("/b.jpg")).status == 200)
    // When
    let answer = try pictor.operate("DELETE", target: "/admin/prefetch/\(began.id)")
    // Then
    #expect(answer.status == 200 && answer.text.contains("\"cancelled\" : true"))
    try pictor.waitFor("the downloads end") { $0.downloads.cancelled == 3 }
    #expect(try pictor.prefetchStatus(began.id).state == .cancelled)
    #expect(everywhere.totalRequests == 3)
    #expect(try pictor.operate("DELETE", target: "/admin/prefetch/\(began.id)").status == 404)
  }

  @Test func `cancelling a prefetch keeps a load that a client also requested`() throws {
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let gate = Gate()
    origin.route("/a.jpg", to: .hold(gate, then: .ok(try TestImages.jpeg(width: 30, height: 20))))
    let began = try pictor.prefetch([origin.url("/a.jpg")])
    try pictor.waitFor("it runs") { $0.downloads.running == 1 }
    let client = try pictor.ask(origin.target("/a.jpg"))
    try blockUntil("the client waits, too") {
      try pictor.downloads().first.map { $0.waiters == 2 && $0.priority == "normal" } ?? false
    }
    _ = try pictor.operate("DELETE", target: "/admin/prefetch/\(began.id)")
    gate.open()
    #expect(try client.readAnswer().status == 200)
    #expect(origin.totalRequests == 1)
  }
}
