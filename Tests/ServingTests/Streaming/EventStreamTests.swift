// EventStreamTests: tests of server-sent events: slow readers, progress filter, stream ends.

import Core
import TestSupport
import Testing

@testable import Serving

extension EventStream {
  /// Appends an event, and wakes the reader.
  fileprivate func send(
    _ name: String, about key: String, isFinal: Bool, data: @escaping @Sendable () -> [UInt8]?
  ) { append(name, about: key, isFinal: isFinal, data: data)?() }
}

@Suite(.onOwnThreads) struct EventStreamTests {
  /// Reads everything from `position` on.
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

  @Test func `a waiting event is replaced by a later one about the same item`() {
    let stream = EventStream()
    var position = 0
    stream.send("a", about: "1", isFinal: false) { Array("{}".utf8) }
    #expect(read(stream, from: &position, room: 5) == "event: a\ndata: {}\n\n")
    stream.send("a", about: "1", isFinal: false) { Array("1".utf8) }
    stream.send("a", about: "2", isFinal: false) { Array("2".utf8) }
    stream.send("a", about: "1", isFinal: false) { Array("3".utf8) }
    #expect(read(stream, from: &position) == "event: a\ndata: 3\n\nevent: a\ndata: 2\n\n")
  }

  @Test func `a final event is never replaced`() {
    let stream = EventStream()
    var position = 0
    stream.send("a", about: "1", isFinal: true) { Array("end".utf8) }
    stream.send("a", about: "1", isFinal: false) { Array("again".utf8) }
    let text = read(stream, from: &position)
    #expect(text.contains("end") && text.contains("again"))
  }

  @Test func `a client that never reads is disconnected`() {
    let stream = EventStream()
    for number in 0...EventStream.longestQueue {
      stream.send("a", about: "\(number)", isFinal: true) { [] }
    }
    var buffer = [UInt8](repeating: 0, count: 8)
    let result = buffer.withUnsafeMutableBytes { stream.read(at: 0, into: $0) }
    #expect(result == .failed)
  }

  @Test func `a client that reads too slowly is disconnected at the queue limit`() {
    let stream = EventStream()
    let wakes = Counter()
    stream.whenReadable { wakes.add() }
    stream.send("a", about: "first", isFinal: true) { [] }
    var buffer = [UInt8](repeating: 0, count: 8)
    #expect(buffer.withUnsafeMutableBytes { stream.read(at: 0, into: $0) } == .bytes(8))
    for number in 0...EventStream.longestQueue {
      stream.send("a", about: "\(number)", isFinal: true) { [] }
    }
    #expect(buffer.withUnsafeMutableBytes { stream.read(at: 8, into: $0) } == .failed)
    let before = wakes.value
    stream.send("a", about: "last", isFinal: true) { [] }
    #expect(wakes.value == before)
  }

  @Test func `an observer added after the end is called and not retained`() {
    let stream = EventStream()
    stream.ended()
    weak var kept: Counter?
    do {
      let told = Counter()
      kept = told
      stream.whenEnded { told.add() }
      #expect(told.value == 1)
    }
    #expect(kept == nil)
  }

  @Test func `an ended stream ends after the waiting events`() {
    let stream = EventStream()
    stream.send("a", about: "1", isFinal: true) { Array("1".utf8) }
    stream.end()
    stream.send("a", about: "1", isFinal: true) { Array("2".utf8) }
    var position = 0
    #expect(read(stream, from: &position) == "event: a\ndata: 1\n\n")
    var buffer = [UInt8](repeating: 0, count: 8)
    #expect(buffer.withUnsafeMutableBytes { stream.read(at: position, into: $0) } == .end)
  }

  @Test func `only events that are sent are built`() {
    let stream = EventStream()
    let made = Counter()
    for number in 0..<1_000 {
      stream.send("a", about: "1", isFinal: false) {
        made.add()
        return Array("\(number)".utf8)
      }
    }
    stream.send("a", about: "2", isFinal: false) { nil }
    var position = 0
    #expect(read(stream, from: &position) == "event: a\ndata: 999\n\n")
    #expect(made.value == 1)
  }

  @Test func `events beyond the buffer are sent in order, each in its latest state`() {
    let stream = EventStream()
    for number in 0..<1_000 {
      stream.send("a", about: "\(number)", isFinal: false) { Array("old".utf8) }
    }
    var buffer = [UInt8](repeating: 0, count: 16)
    // "event: a", "data: old" and two line ends.
    #expect(buffer.withUnsafeMutableBytes { stream.read(at: 0, into: $0) } == .bytes(16))
    for number in 0..<1_000 {
      stream.send("a", about: "\(number)", isFinal: false) { Array("\(number)".utf8) }
    }
    stream.end()
    var position = 16
    let rest = String(decoding: buffer, as: UTF8.self) + read(stream, from: &position)
    let events = rest.split(separator: "\n\n").map { $0.dropFirst("event: a\ndata: ".count) }
    // Events that were already being sent are sent again after the waiting ones.
    let begun = events.prefix { $0 == "old" }.count
    #expect(begun > 0 && begun < 1_000)
    #expect(
      events.dropFirst(begun).map { Int($0) } == Array(begun..<1_000) + Array(0..<begun))
  }

  @Test func `progress is reported in steps, and its end always`() {
    var filter = ProgressFilter(minimumInterval: 0.5)
    let steps = [0.0, 0.1, 0.49, 0.5, 0.99, 1.0].map {
      filter.passes(1, fraction: $0, isFinal: false)
    }
    #expect(steps == [true, false, false, true, false, true])
    let end = filter.passes(1, fraction: 1, isFinal: true)
    #expect(end)
    // Without a known length there are no steps, and an interval of 0 reports each change.
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

@Suite(.onOwnThreads) struct ProgressEventsTests {
  private let services = TestServices()
  private let header: KeyValuePairs = [
    "Authorization": "Bearer " + operatorToken, "Accept": "text/event-stream",
  ]

  private func withOperators(
    _ body: (Server, HTTPClient) async throws -> Void
  ) async throws {
    try await withServer(
      TestProvider(), services: services, configure: { $0.operatorTokens = [operatorToken] }
    ) { server in try await body(server, try HTTPClient(port: server.port)) }
  }

  @Test func `downloads that end while they are listed are reported as ended last`() async {
    let ids = 0..<500 as Range<UInt64>
    for _ in 0..<20 {
      let events = ProgressEvents(minimumInterval: 0)
      let running = ids.map { status($0, state: .running) }
      let finished = ids.map { status($0, state: .finished) }
      async let told: Void = { for status in finished { events.report(status) } }()
      events.list(running)
      await told
      events.stream.end()
      var text = [UInt8]()
      var position = 0
      var count = 0
      var buffer = [UInt8](repeating: 0, count: 32 << 10)
      repeat {
        let read = buffer.withUnsafeMutableBytes { events.stream.read(at: position, into: $0) }
        count = if case .bytes(let more) = read { more } else { 0 }
        text += buffer[..<count]
        position += count
      } while count > 0
      let last = String(decoding: text, as: UTF8.self).split(separator: "\n\n")
        .reduce(into: [Substring: Bool]()) { ends, event in
          guard let id = event.firstMatch(of: /"id":(\d+)/)?.1 else { return }
          ends[id] = event.contains("\"state\":\"finished\"")
        }
      #expect(last.count == ids.count && last.values.allSatisfy { $0 })
    }
  }

  private func status(
    _ id: UInt64, state: DownloadStatus.State, received: Int = 0, expected: Int = -1
  ) -> DownloadStatus {
    var status = DownloadStatus(
      id: id, url: "https://h/\(id).jpg", host: "h:443", priority: .normal)
    status.state = state
    status.received = received
    status.expected = expected
    return status
  }

  @Test func `downloads are listed or sent as events`() async throws {
    services.listed.withLock { $0 = [status(1, state: .running, received: 10)] }
    try await withOperators { server, client in
      let list = try HTTPClient(port: server.port).get(
        "/admin/downloads", headers: operatorHeader)
      #expect(list.text.contains("\"expected\" : -1"))
      #expect(list.text.contains("\"received\" : 10"))
      try client.send(
        HTTPClient.text("GET", target: "/admin/downloads?interval=0.5", headers: header))
      let first = try client.read(until: "\n\n\r\n")
      #expect(first.contains("Content-Type: text/event-stream"))
      #expect(first.contains("event: download\ndata: {"))
      #expect(first.contains("\"received\":10"))
      try await eventually { services.observerCount == 1 }
      for received in stride(from: 0, through: 100, by: 10) {
        services.report(status(2, state: .running, received: received, expected: 100))
      }
      services.report(status(2, state: .finished, received: 100, expected: 100))
      let rest = try client.read(until: "\"state\":\"finished\"")
      #expect(rest.contains("\"id\":2"))
      // After the client disconnects, observers are not called.
      client.close()
      try await eventually { services.observerCount == 0 }
      try await eventually { server.figures.active == 0 }
    }
  }

  @Test func `the interval is a number from 0 to 1`() async throws {
    try await withOperators { server, client in
      for interval in ["2", "-1", "x", ""] {
        let answer = try client.get(
          "/admin/downloads?interval=\(interval)", headers: operatorHeader)
        #expect(answer.status == 400)
        #expect(answer.text.contains("a number from 0 to 1"))
      }
    }
  }

  @Test func `the events of a prefetch end with it`() async throws {
    try await withOperators { server, client in
      let id = try services.prefetch([])
      try client.send(HTTPClient.text("GET", target: "/admin/prefetch/\(id)", headers: header))
      _ = try client.read(until: "\n\n\r\n")
      try await eventually { services.observerCount == 1 }
      var status = PrefetchStatus(id: id, total: 4)
      for done in 1...4 {
        status.finished = done
        services.report(status)
      }
      status.state = .finished
      services.report(status)
      let rest = try client.read(until: "\r\n0\r\n\r\n")
      #expect(rest.contains("\"finished\":4"))
      #expect(rest.contains("\"state\":\"finished\""))
      try await eventually { services.observerCount == 0 }
      // The connection stays open.
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `a stop ends event streams at once with a complete response`() async throws {
    try await withOperators { server, client in
      try client.send(HTTPClient.text("GET", target: "/admin/downloads", headers: header))
      try await eventually { services.observerCount == 1 }
      let stop = Task { await server.stop() }
      _ = try client.read(until: "\r\n0\r\n\r\n")
      await stop.value
      #expect(services.observerCount == 0)
    }
  }

  @Test func `many event streams can open and close`() async throws {
    try await withOperators { server, _ in
      let clients = try (0..<50).map { _ in try HTTPClient(port: server.port) }
      for client in clients {
        try client.send(HTTPClient.text("GET", target: "/admin/downloads", headers: header))
      }
      try await eventually { services.observerCount == 50 }
      for number in 0..<200 {
        services.report(status(UInt64(number), state: .finished, received: 1, expected: 1))
      }
      for (index, client) in clients.enumerated() {
        if index % 2 == 0 {
          let all = try client.read(until: "https://h/199.jpg")
          #expect(all.components(separatedBy: "\"state\":\"finished\"").count == 201)
        }
        client.close()
      }
      try await eventually { services.observerCount == 0 && server.figures.active == 0 }
    }
  }
}
