// InheritedSocketTests: a server that stops on a socket of another process loses nothing.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct InheritedSocketTests {
  /// The socket of the process that holds it.
  private let holder: ListeningSocket
  private var port: Int { holder.address.port ?? 0 }

  init() throws { holder = try ListeningSocket(on: .network(host: "127.0.0.1", port: 0)) }

  /// Runs a server on a copy of the socket.
  private func withHeirs(
    _ provider: TestProvider, connections: Int = 100, patience: Duration = .seconds(60),
    body: (Server) async throws -> Void
  ) async throws {
    let copy = dup(holder.descriptor)
    try await withServer(
      provider,
      configure: {
        $0.inherited.clients = [copy]
        $0.connectionLimit = connections
        $0.graceTime = .seconds(60)
        $0.firstRequestTime = patience
      }, body: body)
  }

  /// A provider whose images wait for `gate`, except `https://example.org/hit`.
  private func provider(_ gate: Gate) throws -> TestProvider {
    let hit = try makeRequest("https://example.org/hit").key
    let provider = TestProvider { request throws(ImageError) in
      if request.key == hit { return makeDelivery(makeVariant(hit, body: [2])) }
      await gate.pass()
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    provider.keep(makeVariant(hit, body: [2]))
    return provider
  }

  @Test func `a stop serves what was accepted, and leaves the rest to the next server`()
    async throws
  {
    let gate = Gate()
    let provider = try provider(gate)
    try await withHeirs(provider) { server in
      // Given a running request, an idle connection, a new one, and one with half a header
      let running = try HTTPClient(port: port)
      try running.send(HTTPClient.text("GET", target: imageTarget))
      let idle = try HTTPClient(port: port)
      #expect(try idle.get("/livez").status == 200)
      let new = try HTTPClient(port: port)
      let half = try HTTPClient(port: port)
      try half.send("GET /image?url=https://example.org/miss HTTP/1.1\r\nHost:")
      try await eventually {
        provider.asked.value == 1 && server.figures.connections == 4
      }
      try await eventually { queuedBytes(1, atPort: port) == 0 }
      // When
      async let stopped: Void = server.stop()
      try idle.waitForClose()
      // Then a new connection waits
      let later = try HTTPClient(port: port)
      try later.send(HTTPClient.text("GET", target: "/image?url=https://example.org/hit"))
      // And what was accepted gets the usual answers, a miss too
      let hit = try new.get("/image?url=https://example.org/hit")
      #expect(hit.status == 200 && hit["Connection"] == "close")
      try half.send(" t\r\n\r\n")
      gate.open()
      #expect(try half.readAnswer().status == 200)
      let answer = try running.readAnswer()
      #expect(answer.status == 200 && answer["Connection"] == "close")
      await stopped
      // When the next server starts
      try await withHeirs(provider) { _ in
        let answer = try later.readAnswer()
        #expect(answer.body == [2])
      }
    }
  }

  @Test func `a connection that is accepted beyond the limit is served at a stop`() async throws {
    // Given as many busy connections as there may be, and one more
    let gate = Gate()
    let provider = try provider(gate)
    try await withHeirs(provider, connections: 16) { server in
      let busy = try (0..<16).map { number in
        let client = try HTTPClient(port: port)
        try client.send(
          HTTPClient.text("GET", target: "/image?url=https://example.org/\(number)"))
        return client
      }
      try await eventually { provider.asked.value == 16 }
      let more = try HTTPClient(port: port)
      try await eventually { queuedBytes(1, atPort: port) == 0 }
      try more.send(HTTPClient.text("GET", target: "/image?url=https://example.org/hit"))
      // When
      async let stopped: Void = server.stop()
      // Then
      #expect(try more.readAnswer().body == [2])
      gate.open()
      for client in busy { #expect(try client.readAnswer().status == 200) }
      await stopped
    }
  }

  @Test func `a connection without a request does not keep a server for long`() async throws {
    try await withHeirs(TestProvider(), patience: .milliseconds(50)) { server in
      let silent = try HTTPClient(port: port, timeout: 8)
      try await eventually { server.figures.connections == 1 }
      async let stopped: Void = server.stop()
      // In less than the grace period and the time for a header
      try silent.waitForClose()
      await stopped
    }
  }
}
