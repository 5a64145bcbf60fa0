// Tests of prefetching over HTTP: what a list may say, what becomes of it, and what an operator sees of it.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AdminPrefetchTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }

  @Test func `a list loads what it can, says what it cannot, and skips what is there`() throws {
    // Given
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let image = try TestImages.jpeg(width: 60, height: 40)
    for path in ["/1.jpg", "/2.jpg", "/3.jpg"] { origin.serve(path, image) }
    let list = [
      origin.url("/1.jpg"), "# a comment", "no URL", "",
      "{\"url\": \"\(origin.url("/2.jpg"))\", \"w\": 20}", "\"\(origin.url("/absent.jpg"))\"",
      "/image?url=\(encoded(origin.url("/3.jpg")))&h=10", origin.url("/1.jpg"),
      "url=\(encoded(origin.url("/1.jpg")))&w=0",
    ]
    // When
    let began = try pictor.prefetch(list)
    let events: EventReader<PrefetchStatus> = try pictor.events(at: "/admin/prefetch/\(began.id)")
    let told = try events.events { $0.state != .running }
    // Then: the events end with it, and each line has its end
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
    // Whoever asks gets them from memory.
    for (path, rest) in [("/1.jpg", ""), ("/2.jpg", "&w=20"), ("/3.jpg", "&h=10")] {
      let answer = try pictor.get(origin.target(path, rest))
      #expect(answer["cache-status"] == "pictor; hit; detail=memory", "\(path)")
    }
    // And the list again has nothing left to do.
    let again = try pictor.prefetch(list)
    try pictor.waitFor("it has ended") { $0.prefetch.lists == 0 && $0.prefetch.skipped == 5 }
    #expect(try pictor.prefetchStatus(again.id).skipped == 4)
    let all = try pictor.operate("GET", "/admin/prefetch")
    #expect(all.text.contains(began.id) && all.text.contains(again.id))
  }

  @Test func `a list is taken times the presets, each image loaded once`() throws {
    let pictor = try PictorProcess(
      in: folder, PictorProcess.operated + ["--presets", "thumb=w=10,wide=w=30&h=5&fit=cover"])
    for path in ["/1.jpg", "/2.jpg"] {
      origin.serve(path, try TestImages.jpeg(width: 60, height: 40))
    }
    let began = try pictor.prefetch(
      ["/1.jpg", "/2.jpg"].map { origin.url($0) }, "?preset=thumb&preset=wide")
    #expect(began.total == 4)
    try pictor.waitFor("it is done") { $0.prefetch.finished == 4 }
    #expect(origin.totalRequests == 2)
    let answer = try pictor.get(origin.target("/2.jpg", "&w=30&h=5&fit=cover"))
    #expect(answer["cache-status"] == "pictor; hit; detail=memory")
    let unknown = try pictor.operate("POST", "/admin/prefetch?preset=none", body: "")
    #expect(unknown.status == 400 && unknown.text.contains("one of thumb, wide"))
  }

  @Test func `three at a time at low priority, one of a host, until it is cancelled`() throws {
    // Given: images of five hosts that nobody sends
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let everywhere = try Origin(on: "0.0.0.0")
    everywhere.route("/a.jpg", .silence)
    origin.serve("/b.jpg", try TestImages.jpeg(width: 30, height: 20))
    let list = (1...5).flatMap { host in
      (0..<3).map { everywhere.url("/a.jpg?\($0)", host: "127.0.0.\(host)") }
    }
    // When
    let began = try pictor.prefetch(list)
    try pictor.waitUntil("three run") { everywhere.activeRequests == 3 }
    // Then
    let figures = try pictor.stats().prefetch
    #expect((figures.running, figures.waiting) == (3, 12))
    let downloads = try pictor.downloads()
    #expect(Set(downloads.map(\.host)).count == 3)
    #expect(downloads.allSatisfy { $0.priority == "low" })
    #expect(try pictor.get(origin.target("/b.jpg")).status == 200)
    // When
    let answer = try pictor.operate("DELETE", "/admin/prefetch/\(began.id)")
    // Then
    #expect(answer.status == 200 && answer.text.contains("\"cancelled\" : true"))
    try pictor.waitFor("the downloads end") { $0.downloads.cancelled == 3 }
    #expect(try pictor.prefetchStatus(began.id).state == .cancelled)
    #expect(everywhere.totalRequests == 3)
    #expect(try pictor.operate("DELETE", "/admin/prefetch/\(began.id)").status == 404)
  }

  @Test func `cancelling a list keeps the image for whoever else wants it`() throws {
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let gate = Gate()
    origin.route("/a.jpg", .hold(gate, then: .ok(try TestImages.jpeg(width: 30, height: 20))))
    let began = try pictor.prefetch([origin.url("/a.jpg")])
    try pictor.waitFor("it runs") { $0.downloads.running == 1 }
    let client = try pictor.ask(origin.target("/a.jpg"))
    try pictor.waitUntil("the client waits, too") {
      try pictor.downloads().first.map { $0.waiters == 2 && $0.priority == "normal" } ?? false
    }
    _ = try pictor.operate("DELETE", "/admin/prefetch/\(began.id)")
    gate.open()
    #expect(try client.readAnswer().status == 200)
    #expect(origin.totalRequests == 1)
  }
}
