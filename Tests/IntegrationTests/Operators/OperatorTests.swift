// Operators and operation keys on running work: supersede, cancel, pause, resume, watch.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) final class OperatorTests: OriginSuite {
  // MARK: cancelAll, isRunning

  @Test func `an operator's cancel ends all work, and the server continues`() throws {
    // Given
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    for path in ["/1.jpg", "/2.jpg"] {
      origin.route(path, to: .ok(image, holdingAfter: 0, at: gate))
    }
    let clients = try ["/1.jpg", "/1.jpg", "/2.jpg"].map { try pictor.ask(origin.target($0)) }
    try pictor.waitFor("they run") {
      $0.flights.variants == 2 && $0.flights.sources == 2 && $0.flights.coalesced == 1
        && $0.downloads.running == 2
    }
    // When
    let answer = try pictor.operate("POST", target: "/admin/cancel")
    // Then
    #expect(answer.status == 200 && answer.text.contains("\"cancelled\" : 3"))
    for client in clients {
      let answer = try client.readAnswer()
      #expect(answer.status == 503 && answer["retry-after"] == "1")
    }
    try pictor.waitFor("nothing runs") {
      let flights = $0.flights.variants.whole + $0.flights.sources.whole + $0.flights.waiting.whole
      return flights == 0 && $0.downloads.running == 0 && $0.downloads.cancelled == 2
    }
    #expect(try pictor.failedURLs().isEmpty)
    gate.open()
    #expect(try pictor.get(origin.target("/1.jpg")).status == 200)
  }

  // MARK: suspended

  @Test func `a pause delays only downloads that have not started`() throws {
    // Given: a cached image, and a running download
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    for path in ["/kept.jpg", "/waits.jpg"] { origin.serve(path, bytes: image) }
    origin.route("/runs.jpg", to: .hold(gate, then: .ok(image)))
    _ = try pictor.get(origin.target("/kept.jpg"))
    let running = try pictor.ask(origin.target("/runs.jpg"))
    try pictor.waitFor("it runs") { $0.downloads.running == 1 }
    // When
    #expect(try pictor.operate("POST", target: "/admin/pause").text.contains("\"paused\" : true"))
    let waiting = try pictor.ask(origin.target("/waits.jpg"))
    // Then
    try pictor.waitFor("it waits") { $0.downloads.waiting == 1 && $0.downloads.paused == true }
    #expect(try pictor.get(origin.target("/kept.jpg")).status == 200)
    gate.open()
    #expect(try running.readAnswer().status == 200)
    #expect(try pictor.stats().downloads.waiting == 1)
    #expect(origin.requests(to: "/waits.jpg") == 0)
    // When
    #expect(try pictor.operate("POST", target: "/admin/resume").text.contains("\"paused\" : false"))
    // Then
    #expect(try waiting.readAnswer().status == 200)
    #expect(try pictor.stats().downloads.paused == false)
  }

  // MARK: Progress

  @Test func `the download list shows each download's progress and number of clients`() throws {
    // Given: a waiting download, one of known length, and one of unknown length
    let pictor = try PictorProcess(
      in: folder,
      PictorProcess.operated + [
        "--download.limit_per_host", "2", "--server.allow", "priority=high",
      ])
    let gate = Gate()
    let image = try TestImages.jpeg(width: 60, height: 40)
    origin.route("/known.jpg", to: .ok(image, holdingAfter: 100, at: gate))
    let chunks = [image.prefix(100), image.dropFirst(100)].map { OriginReply.chunk(Array($0)) }
    origin.route(
      "/unknown.jpg",
      to: OriginReply([
        .send(OriginReply.chunkedHead + chunks[0]), .hold(gate),
        .send(chunks[1] + Array("0\r\n\r\n".utf8)),
      ]))
    origin.serve("/waits.jpg", bytes: image)
    var clients = try ["/known.jpg", "/unknown.jpg"].map { try pictor.ask(origin.target($0)) }
    try blockUntil("both have begun") {
      try pictor.downloads().count { $0.received == 100 } == 2
    }
    clients.append(try pictor.ask(origin.target("/known.jpg", adding: "&priority=high&w=10")))
    clients.append(try pictor.ask(origin.target("/waits.jpg", adding: "&priority=low")))
    try pictor.waitFor("all are there") { $0.downloads.waiting == 1 && $0.flights.coalesced == 1 }
    // Then
    let list = try pictor.downloads()
    #expect(Set(list.map(\.url)).count == 3)
    for status in list {
      switch status.url {
      case origin.url("/known.jpg"):
        #expect(status.state == .running && status.expected == image.count)
        #expect(status.waiters == 2 && status.priority == "high")
        #expect(status.bytesPerSecond > 0 && status.seconds > 0)
      case origin.url("/unknown.jpg"):
        #expect(status.state == .running && status.expected == -1 && status.received == 100)
        #expect(status.waiters == 1 && status.priority == "normal")
      default:
        #expect(status.state == .waiting && status.expected == -1 && status.received == 0)
        #expect(status.priority == "low" && status.host == "127.0.0.1:\(origin.port)")
      }
    }
    gate.open()
    for client in clients { #expect(try client.readAnswer().status == 200) }
    #expect(try pictor.downloads().isEmpty)
  }

  @Test func `an unknown length is reported as -1 until the end`() throws {
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/a.jpg", to: .chunked(image, size: 100))
    let events: EventReader<DownloadStatus> = try pictor.events(at: "/admin/downloads")
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    let told = try events.events { $0.state == .finished }
    #expect(told.last?.received == image.count)
    #expect(told.allSatisfy { $0.expected == -1 })
  }
}
