// StoppingTests: tests of connections and requests during a server stop.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct StoppingTests {
  @Test func `a stop refuses new requests and finishes running ones`() async throws {
    let gate = Gate()
    let provider = TestProvider { request throws(ImageError) in
      await gate.pass()
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    provider.keep(makeVariant(try makeRequest("https://example.org/hit").key))
    try await withServer(provider, configure: { $0.graceTime = .seconds(20) }) { server in
      let running = try server.ask()
      let kept = try HTTPClient(port: server.port)
      let other = try HTTPClient(port: server.port)
      #expect(try kept.get("/stats").status == 200)
      #expect(try other.get("/stats").status == 200)
      try await eventually { provider.asked.value == 1 }
      let port = server.port
      server.drain()

      #expect(throws: HTTPClientError.cannotConnect(errno: ECONNREFUSED)) {
        try HTTPClient(port: port)
      }
      let stats = try other.get("/stats")
      #expect(stats.status == 503 && stats.text.contains("\"draining\""))
      #expect(stats.headers.count { $0.name == "Date" } == 1)
      #expect(stats["Cache-Control"] == "no-store")
      let refused = try kept.get("/image?url=https://example.org/hit")
      #expect(refused.status == 503 && refused.text.contains("\"draining\""))
      #expect(refused["Connection"] == "close" && refused["Retry-After"] == "1")
      try kept.waitForClose()

      async let stopped: Void = server.stop()
      gate.open()
      let answer = try running.readAnswer()
      #expect(answer.status == 200 && answer.body == [1])
      #expect(answer["Connection"] == "close")
      await stopped
    }
  }

  @Test func `a stop does not wait for an unfinished request body`() async throws {
    try await withServer { server in
      let client = try HTTPClient(port: server.port)
      try client.occupy()
      #expect(server.figures.active == 0)
      try client.send("123456789")
      #expect(try client.readAnswer().status == 405)
      try await eventually { server.figures.active == 0 }
    }
  }

  @Test func `requests still running after the grace period are answered 503`() async throws {
    let provider = CancellableProvider()
    try await withServer(provider.provider) { server in
      let clients = try (0..<20).map { _ in try server.ask() }
      try await eventually { provider.provider.asked.value == 20 }
      await server.stop()
      for client in clients { #expect(try client.readAnswer().status == 503) }
      try await eventually { provider.cancelled.value == 20 }
    }
  }

  @Test func `a released server stops`() async throws {
    try await withTaskExecutorPreference(BlockingExecutor.shared) { try await releaseServer() }
  }

  private func releaseServer() async throws {
    let provider = CancellableProvider()
    var configuration = ServerConfiguration()
    configuration.port = 0
    var server: Server? = Server(
      configuration: configuration, provider: provider.provider,
      services: AdminServices(TestServices()), stats: makeStats,
      log: Log(level: .error))
    try server?.start()
    let client = try HTTPClient(port: server?.port ?? 0)
    try client.send(HTTPClient.text("GET", target: imageTarget))
    try await eventually { provider.provider.asked.value == 1 }
    server = nil
    try client.waitForClose()
    try await eventually { provider.cancelled.value == 1 }
  }
}
