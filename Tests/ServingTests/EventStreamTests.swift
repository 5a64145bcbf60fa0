// Tests of server-sent events: what is kept for a slow reader, which progress is reported, and how streams end.

import Model
import TestSupport
import Testing

@testable import Serving

struct EventStreamTests {
  /// Everything there is to read from `position` on.
  private func read(_ stream: EventStream, from position: inout Int, room: Int = 64) -> String {
    var text: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: room)
    while case .bytes(let count) = buffer.withUnsafeMutableBytes({
      stream.read(at: position, into: $0)
    }) {
      text += buffer[..<count]
      position += count
    }
    return String(decoding: text, as: UTF8.self)
  }

  @Test func `an event waits whole, and a later one about the same thing takes its place`() {
    let stream = EventStream()
    var position = 0
    stream.send("a", about: "1", Array("{}".utf8), isFinal: false)
    #expect(read(stream, from: &position, room: 5) == "event: a\ndata: {}\n\n")
    stream.send("a", about: "1", Array("1".utf8), isFinal: false)
    stream.send("a", about: "2", Array("2".utf8), isFinal: false)
    stream.send("a", about: "1", Array("3".utf8), isFinal: false)
    #expect(read(stream, from: &position) == "event: a\ndata: 3\n\nevent: a\ndata: 2\n\n")
  }

  @Test func `an end is never replaced`() {
    let stream = EventStream()
    var position = 0
    stream.send("a", about: "1", Array("end".utf8), isFinal: true)
    stream.send("a", about: "1", Array("again".utf8), isFinal: false)
    let text = read(stream, from: &position)
    #expect(text.contains("end") && text.contains("again"))
  }

  @Test func `whoever does not read at all is cut off`() {
    let stream = EventStream()
    for number in 0...EventStream.longestQueue {
      stream.send("a", about: "\(number)", [], isFinal: true)
    }
    var buffer = [UInt8](repeating: 0, count: 8)
    let result = buffer.withUnsafeMutableBytes { stream.read(at: 0, into: $0) }
    #expect(result == .failed)
  }

  @Test func `an ended stream ends behind what waits`() {
    let stream = EventStream()
    stream.send("a", about: "1", Array("1".utf8), isFinal: true)
    stream.end()
    stream.send("a", about: "1", Array("2".utf8), isFinal: true)
    var position = 0
    #expect(read(stream, from: &position) == "event: a\ndata: 1\n\n")
    var buffer = [UInt8](repeating: 0, count: 8)
    #expect(buffer.withUnsafeMutableBytes { stream.read(at: position, into: $0) } == .end)
  }

  @Test func `progress is reported in steps, its end always`() {
    var filter = ProgressFilter(minimumInterval: 0.5)
    let steps = [0.0, 0.1, 0.49, 0.5, 0.99, 1.0].map {
      filter.passes(1, fraction: $0, isFinal: false)
    }
    #expect(steps == [true, false, false, true, false, true])
    let end = filter.passes(1, fraction: 1, isFinal: true)
    #expect(end)
    // An unknown whole has no steps, and an interval of 0 reports each.
    var each = ProgressFilter(minimumInterval: 0)
    let all = (0..<2).flatMap { _ in
      [
        filter.passes(2, fraction: nil, isFinal: false),
        each.passes(1, fraction: 0.5, isFinal: false),
      ]
    }
    #expect(all == [true, true, true, true])
  }
}

struct ProgressEventsTests {
  private let token = "correct-horse-battery"
  private let operations = TestOperations()
  private var header: KeyValuePairs<String, String> {
    ["Authorization": "Bearer " + token, "Accept": "text/event-stream"]
  }

  private func withOperators(
    _ body: (Server, HTTPClient) async throws -> Void
  ) async throws {
    try await withServer(
      TestProvider(), operations: operations, configure: { $0.operatorTokens = [token] }
    ) { server in try await body(server, try HTTPClient(port: server.port)) }
  }

  private func status(
    _ id: UInt64, _ state: DownloadStatus.State, received: Int = 0, expected: Int = -1
  ) -> DownloadStatus {
    var status = DownloadStatus(
      id: id, url: "https://h/\(id).jpg", host: "h:443", priority: .normal)
    (status.state, status.received, status.expected) = (state, received, expected)
    return status
  }

  /// Reads on until `text` has come.
  private func read(_ client: HTTPClient, until text: String) throws -> String {
    var all: [UInt8] = []
    while !all.suffix(text.utf8.count).elementsEqual(text.utf8) { all += try client.read(1) }
    return String(decoding: all, as: UTF8.self)
  }

  @Test func `downloads are listed, or told as they happen`() async throws {
    operations.listed.withLock { $0 = [status(1, .running, received: 10)] }
    try await withOperators { server, client in
      let list = try HTTPClient(port: server.port).get(
        "/admin/downloads", headers: ["Authorization": "Bearer " + token])
      #expect(list.text.contains("\"expected\" : -1"))
      #expect(list.text.contains("\"received\" : 10"))
      try client.send(
        HTTPClient.text("GET", "/admin/downloads?interval=0.5", headers: header))
      let first = try read(client, until: "\n\n\r\n")
      #expect(first.contains("Content-Type: text/event-stream"))
      #expect(first.contains("event: download\ndata: {"))
      #expect(first.contains("\"received\":10"))
      #expect(await eventually { operations.observerCount == 1 })
      for received in stride(from: 0, through: 100, by: 10) {
        operations.report(status(2, .running, received: received, expected: 100))
      }
      operations.report(status(2, .finished, received: 100, expected: 100))
      let rest = try read(client, until: "\"state\":\"finished\"")
      #expect(rest.contains("\"id\":2"))
      // The client goes, and nobody is told any more.
      client.close()
      #expect(await eventually { operations.observerCount == 0 })
      #expect(await eventually { server.figures.active == 0 })
    }
  }

  @Test func `an interval is a part of the whole`() async throws {
    try await withOperators { server, client in
      for interval in ["2", "-1", "x", ""] {
        let answer = try client.get(
          "/admin/downloads?interval=\(interval)", headers: ["Authorization": "Bearer " + token])
        #expect(answer.status == 400)
        #expect(answer.text.contains("a number from 0 to 1"))
      }
    }
  }

  @Test func `the events of a prefetch end with it`() async throws {
    try await withOperators { server, client in
      let id = try operations.prefetch([])
      try client.send(HTTPClient.text("GET", "/admin/prefetch/\(id)", headers: header))
      _ = try read(client, until: "\n\n\r\n")
      #expect(await eventually { operations.observerCount == 1 })
      var status = PrefetchStatus(id: id, total: 4)
      for done in 1...4 {
        status.finished = done
        operations.report(status)
      }
      status.state = .finished
      operations.report(status)
      let rest = try read(client, until: "\r\n0\r\n\r\n")
      #expect(rest.contains("\"finished\":4"))
      #expect(rest.contains("\"state\":\"finished\""))
      #expect(await eventually { operations.observerCount == 0 })
      // The connection stays.
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `a stop ends the events at once and in good order`() async throws {
    try await withOperators { server, client in
      try client.send(HTTPClient.text("GET", "/admin/downloads", headers: header))
      #expect(await eventually { operations.observerCount == 1 })
      let stop = Task { await server.stop() }
      _ = try read(client, until: "\r\n0\r\n\r\n")
      await stop.value
      #expect(operations.observerCount == 0)
    }
  }

  @Test func `many streams of news come and go`() async throws {
    try await withOperators { server, _ in
      let clients = try (0..<50).map { _ in try HTTPClient(port: server.port) }
      for client in clients {
        try client.send(HTTPClient.text("GET", "/admin/downloads", headers: header))
      }
      #expect(await eventually { operations.observerCount == 50 })
      for number in 0..<200 {
        operations.report(status(UInt64(number), .finished, received: 1, expected: 1))
      }
      for (index, client) in clients.enumerated() {
        if index % 2 == 0 {
          let all = try read(client, until: "https://h/199.jpg")
          #expect(all.components(separatedBy: "\"state\":\"finished\"").count == 201)
        }
        client.close()
      }
      #expect(await eventually { operations.observerCount == 0 && server.figures.active == 0 })
    }
  }
}

struct PrefetchRequestTests {
  private let token = "correct-horse-battery"
  private let operations = TestOperations()

  private func post(
    _ body: String, _ query: String = "", presets: [String: String] = [:]
  ) async throws -> (answer: HTTPAnswer, lines: [PrefetchLine]) {
    try await withServer(
      TestProvider(), operations: operations,
      configure: {
        $0.operatorTokens = [token]; $0.presets = presets
      }
    ) { server in
      let answer = try HTTPClient(port: server.port).request(
        "POST", "/admin/prefetch" + query, headers: ["Authorization": "Bearer " + token],
        body: Array(body.utf8))
      return (answer, operations.lists.withLock { $0["1"] ?? [] })
    }
  }

  @Test func `a line is a URL or a query, bare or in JSON, and a bad one spoils no other`()
    async throws
  {
    let (answer, lines) = try await post(
      """
      https://h/a.jpg
      "https://h/b.jpg?x=1&y=2"

      # a comment
      /image?url=https%3A%2F%2Fh%2Fc.jpg&w=300
      "url=https%3A%2F%2Fh%2Fd.jpg&scale=0.5"
      {"url": "https://h/e.jpg", "w": 300, "fit": "cover", "enlarge": true}\r
      {"url": 
      ftp://h/f.jpg
      https://h/g.jpg
      """)
    #expect(answer.status == 202)
    #expect(answer.text.contains("\"id\" : \"1\""))
    #expect(answer.text.contains("\"total\" : 8"))
    #expect(lines.map(\.number) == [1, 2, 5, 6, 7, 8, 9, 10])
    let keys = lines.map { try? $0.request.get().key.text }
    #expect(keys[0] == "https://h/a.jpg " + Transform().canonicalText)
    #expect(keys[1]?.hasPrefix("https://h/b.jpg?x=1&y=2 ") == true)
    #expect(try lines[2].request.get().transform.width == 300)
    #expect(try lines[3].request.get().transform.scale == 0.5)
    #expect(try lines[4].request.get().transform.enlarge)
    #expect(keys[5] == nil && keys[6] == nil && keys[7] != nil)
  }

  @Test func `a list is taken times the presets`() async throws {
    let (answer, lines) = try await post(
      "https://h/a.jpg\nhttps://h/b.jpg", "?preset=small&preset=large",
      presets: ["small": "w=10", "large": "w=1000&format=webp"])
    #expect(answer.status == 202)
    #expect(try lines.map { try $0.request.get().transform.width } == [10, 1_000, 10, 1_000])
  }

  @Test func `a preset that is not there is refused by name`() async throws {
    let (answer, _) = try await post("https://h/a.jpg", "?preset=huge", presets: ["small": "w=10"])
    #expect(answer.status == 400)
    #expect(answer.text.contains("preset='huge' is not allowed: one of small"))
  }

  @Test func `a body that is too long is refused, and the connection goes on`() async throws {
    try await withServer(
      TestProvider(), operations: operations, configure: { $0.operatorTokens = [token] }
    ) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.request(
        "POST", "/admin/prefetch", headers: ["Authorization": "Bearer " + token],
        body: [UInt8](repeating: 0x0a, count: Upload.longest + 1))
      #expect(answer.status == 413)
      #expect(answer.text.contains("\"code\":\"body_too_large\""))
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `too many lines are refused`() async throws {
    let (answer, _) = try await post(String(repeating: "x\n", count: PrefetchLine.most + 1))
    #expect(answer.status == 413)
    #expect(answer.text.contains("\"code\":\"too_many_lines\""))
  }

  @Test func `a stranger's body is not kept`() async throws {
    try await withServer(
      TestProvider(), operations: operations, configure: { $0.operatorTokens = [token] }
    ) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.request(
        "POST", "/admin/prefetch", body: [UInt8](repeating: 0x0a, count: 1_000))
      #expect(answer.status == 401)
      try client.send(HTTPClient.text("POST", "/admin/prefetch", bodyLength: 1 << 20))
      #expect(throws: HTTPClientError.self) {
        try client.send(bytes: [UInt8](repeating: 0x0a, count: 1 << 20))
        _ = try client.readAnswer()
      }
    }
  }
}
