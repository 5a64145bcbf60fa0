// SuspendedRequestTests: tests of suspended requests: responses, deadlines, clients and limits.

import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct SuspendedRequestTests {
  @Test func `a miss is answered when its work ends`() async throws {
    let gate = Gate()
    let provider = TestProvider { request throws(ImageError) in
      await gate.pass()
      return makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
    }
    try await withServer(provider) { server in
      let client = try server.ask()
      try await eventually { provider.asked.value == 1 }
      #expect(server.figures.active == 1)
      // Other requests are answered in the meantime.
      #expect(try HTTPClient(port: server.port).get("/stats").status == 200)
      let before = UnixTime.now.seconds
      gate.open()
      let answer = try client.readAnswer()
      let elapsed = UnixTime.now.seconds - before
      #expect(answer.status == 200)
      #expect(answer.body == [1, 2, 3])
      #expect(
        answer["Cache-Status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
      let timing = answer["Server-Timing"] ?? ""
      #expect(timing.hasPrefix("download;dur=12.000, encode;dur=1.500, total;dur="))
      let age = try #require(answer["Age"].flatMap(Int.init))
      #expect((0...elapsed).contains(age))
      #expect(answer["ETag"] == "\"0123abcd\"")
      #expect(answer["Content-Disposition"] == "inline; filename=\"photo.jpg\"")
      // The connection stays open, and a matching validator is answered 304.
      let second = try client.get(imageTarget, headers: ["If-None-Match": "\"0123abcd\""])
      #expect(second.status == 304)
      #expect(try client.head(imageTarget)["Content-Length"] == "3")
      #expect(server.figures.byOrigin["origin"] == 3)
    }
  }

  @Test func `errors are returned as the contract's JSON`() async throws {
    let provider = TestProvider { _ throws(ImageError) in
      throw .sourceUnreachable(detail: "10.0.0.1 refused \"secret\"")
    }
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      let answer = try client.get(imageTarget)
      #expect(answer.status == 502)
      #expect(answer["Content-Type"] == "application/json")
      #expect(answer["Cache-Control"] == "no-store")
      #expect(answer["X-Content-Type-Options"] == "nosniff")
      let id = answer["X-Request-ID"] ?? ""
      #expect(
        answer.text == """
          {"error":{"code":"source_unreachable","message":"the origin cannot be reached",\
          "request_id":"\(id)"}}

          """)
      let head = try client.head(imageTarget)
      #expect(head.status == 502 && head.body.isEmpty)
      #expect(server.figures.byOrigin["error"] == 2)
    }
  }

  @Test(arguments: [true, false])
  func `a disconnected client's work is cancelled`(closesWhole: Bool) async throws {
    let provider = CancellableProvider()
    try await withServer(provider.provider) { server in
      let client = try server.ask()
      try await eventually { provider.provider.asked.value == 1 }
      if closesWhole { client.close() } else { client.finishSending() }
      try await eventually { provider.cancelled.value == 1 }
      try await eventually { server.figures.clientsGone == 1 && server.figures.active == 0 }
      try await eventually { server.figures.connections == 0 }
    }
  }

  /// What a connection was answered before: misses, which are suspended, and hits, which are not.
  @Test(
    arguments: [[false], [false, false], [false, true], [false, true, false], [true]], 0..<3)
  func `a client that disconnects after answers on the same connection is noticed`(
    isHit: [Bool], way: Int
  ) async throws {
    let held = CancellableProvider()
    let provider = TestProvider { request throws(ImageError) in
      guard request.source.path != "/held" else {
        return try await held.provider.variant(for: request)
      }
      return makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
    }
    provider.keep(makeVariant(try makeRequest().key, body: [1, 2, 3]))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      for (number, isHit) in isHit.enumerated() {
        let target = isHit ? imageTarget : "/image?url=https://h/\(number)"
        #expect(try client.get(target).body == [1, 2, 3])
      }
      #expect(provider.asked.value == isHit.count { !$0 })
      try client.send(HTTPClient.text("GET", target: "/image?url=https://h/held"))
      // Way 2: the end may arrive before the request is suspended.
      if way < 2 { try await eventually { held.provider.asked.value == 1 } }
      if way == 0 { client.close() } else { client.finishSending() }
      try await eventually { held.cancelled.value == 1 && server.figures.clientsGone == 1 }
    }
  }

  @Test func `clients that leave after their answers end no other request`() async throws {
    let gate = Gate()
    let provider = TestProvider { request throws(ImageError) in
      if request.source.path == "/held" { await gate.pass() }
      return makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
    }
    try await withServer(provider) { server in
      // Given closed connections whose requests were suspended: later rounds reuse descriptors
      for round in 1...30 {
        gate.close()
        let others = try (0..<4).map { _ in try HTTPClient(port: server.port) }
        for other in others { #expect(try other.get(imageTarget).status == 200) }
        let early = try server.ask("/image?url=https://h/held")
        for other in others { other.close() }
        let late = try server.ask("/image?url=https://h/held")
        try await eventually { provider.asked.value == 6 * round }
        try await eventually { server.figures.connections == 2 }
        // When, then
        gate.open()
        for client in [early, late] { #expect(try client.readAnswer().status == 200) }
      }
      #expect(server.figures.clientsGone == 0)
    }
  }

  @Test func `every request is logged with the same fields, without absent ones`() async throws {
    struct Line: Decodable {
      let method, target, url, cache, error, request_id: String?
      let status, bytes: Int?
    }
    let file = try LogFile()
    let gone = CancellableProvider()
    let provider = TestProvider { request throws(ImageError) in
      guard request.source.path != "/gone" else {
        return try await gone.provider.variant(for: request)
      }
      return makeDelivery(makeVariant(request.key, body: [1, 2, 3]))
    }
    let id = try await withServer(provider, log: file.log()) { server in
      let client = try HTTPClient(port: server.port)
      let id = try client.get(imageTarget)["X-Request-ID"]
      #expect(try client.head(imageTarget).status == 200)
      #expect(try client.get("/image?w=0").status == 400)
      try client.send(HTTPClient.text("GET", target: "/image?url=https://h/gone"))
      try await eventually { gone.provider.asked.value == 1 }
      client.close()
      try await eventually { server.figures.clientsGone == 1 && server.figures.active == 0 }
      return id
    }
    let lines = try file.lines().filter { $0.contains("\"request\"") }
      .map { try JSONDecoder().decode(Line.self, from: Data($0.utf8)) }
    try #require(lines.count == 4)
    #expect(lines.map(\.method) == ["GET", "HEAD", "GET", "GET"])
    #expect(lines.map(\.status) == [200, 200, 400, 499])
    #expect(lines.map(\.bytes).prefix(2) == [3, 0])
    #expect(lines[0].request_id == id && lines.allSatisfy { $0.request_id?.utf8.count == 16 })
    #expect(lines.allSatisfy { $0.target?.hasPrefix("/image?") == true })
    #expect(lines.map { $0.cache != nil } == [true, true, false, false])
    #expect(lines.map(\.error) == [nil, nil, "invalid_parameter", "cancelled"])
    #expect(lines.map(\.url) == [imageURL, imageURL, nil, "https://h/gone"])
  }

  @Test func `a request past its deadline is answered 504, and its work is cancelled`() async throws
  {
    let provider = CancellableProvider()
    try await withClient(
      provider.provider, configure: { $0.requestTimeout = .milliseconds(100) }
    ) { client in
      let answer = try client.get(imageTarget)
      #expect(answer.status == 504)
      #expect(answer.text.contains("\"deadline_exceeded\""))
      try await eventually { provider.cancelled.value == 1 }
      #expect(try client.get("/stats").status == 200)
    }
  }

  @Test func `work that ignores its cancellation does not delay the response`() async throws {
    let gate = Gate()
    let provider = TestProvider { _ throws(ImageError) in
      await gate.pass()
      throw .cancelled
    }
    try await withClient(provider) {
      $0.requestTimeout = .milliseconds(100)
    } body: { client in
      let answer = try client.get(imageTarget)
      #expect(answer.status == 504)
    }
    gate.open()
  }

  @Test func `requests beyond the limit are refused at once`() async throws {
    let provider = CancellableProvider()
    try await withServer(provider.provider) {
      $0.maximumActiveRequests = 3
    } body: { server in
      let waiting = try (0..<3).map { _ in try server.ask() }
      try await eventually { provider.provider.asked.value == 3 }
      let client = try HTTPClient(port: server.port)
      let answer = try client.get(imageTarget)
      #expect(answer.status == 503)
      #expect(answer["Retry-After"] == "1")
      #expect(answer.text.contains("\"overloaded\""))
      let stats = try client.get("/stats")
      #expect(stats.status == 200 && stats.text.contains("\"limit\" : 3"))
      waiting[0].close()
      try await eventually { provider.cancelled.value == 1 }
      try client.send(HTTPClient.text("GET", target: imageTarget))
      try await eventually { provider.provider.asked.value == 4 }
    }
  }

  @Test func `two hundred concurrent clients each get their own response`() async throws {
    let provider = TestProvider { request throws(ImageError) in
      await Task.yield()
      return makeDelivery(makeVariant(request.key, body: Array(request.source.text.utf8)))
    }
    provider.keep(
      makeVariant(try makeRequest("https://h/hit").key, body: Array("https://h/hit".utf8)))
    try await withServer(provider) { server in
      let clients = try (0..<200).map { _ in try HTTPClient(port: server.port) }
      for round in 0..<3 {
        for (index, client) in clients.enumerated() {
          let path = index % 2 == 0 ? "hit" : "\(round)-\(index)"
          try client.send(HTTPClient.text("GET", target: "/image?url=https://h/\(path)"))
        }
        for (index, client) in clients.enumerated() {
          let path = index % 2 == 0 ? "hit" : "\(round)-\(index)"
          let answer = try client.readAnswer()
          #expect(answer.status == 200 && answer.text == "https://h/\(path)")
        }
      }
      #expect(server.figures.connections == 200)
      #expect(server.figures.byOrigin == ["memory": 300, "origin": 300])
    }
  }
}

/// A provider whose work only ends by being cancelled.
struct CancellableProvider {
  let cancelled = Counter()
  let provider: TestProvider

  init() {
    let cancelled = cancelled
    provider = TestProvider { _ throws(ImageError) in
      while !Task.isCancelled { try? await Task.sleep(for: .seconds(3_600)) }
      cancelled.add()
      throw .cancelled
    }
  }
}
