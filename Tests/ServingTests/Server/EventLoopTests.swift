// EventLoopTests: tests that event loops serve all ready connections, and sleep when idle.

import Core
import FoundationEssentials
import Synchronization
import TestSupport
import Testing

@testable import Serving

/// A provider with every image in memory that blocks the first calling thread.
private final class HoldingProvider: ImageProvider {
  private let isFirst = Atomic<Bool>(true)
  let isHolding = Atomic<Bool>(false)
  let release = Semaphore()

  func cachedVariant(for key: CacheKey) -> Variant? {
    if isFirst.exchange(false, ordering: .relaxed) {
      isHolding.store(true, ordering: .relaxed)
      release.wait()
    }
    return makeVariant(key)
  }

  func deliveryAtOnce(for request: ImageRequest) -> ImageDelivery? { nil }

  func variant(for request: ImageRequest) async throws(ImageError) -> ImageDelivery {
    throw .sourceNotFound(status: 404)
  }
}

// libmicrohttpd fetches 128 events at a time. After a full batch, its own threads wait for another
// event first.
@Suite(.onOwnThreads) struct EventLoopTests {
  @Test(arguments: [1, 127, 128, 129, 256])
  func `requests sent during a busy event loop are answered without another event`(
    count: Int
  ) async throws {
    try await withCrowd(count) { _, clients, holdWhile in
      try await holdWhile {
        for client in clients { try client.send(HTTPClient.text("GET", target: imageTarget)) }
      }
      for client in clients { #expect(try client.readAnswer().status == 200) }
    }
  }

  @Test(arguments: [127, 128, 129, 256])
  func `disconnects during a busy event loop are noticed without another event`(
    count: Int
  ) async throws {
    try await withCrowd(count) { server, clients, holdWhile in
      try await holdWhile { for client in clients { client.close() } }
      try await eventually { server.figures.connections == 0 }
    }
  }

  @Test func `event loops woken from other threads sleep when no work is left`()
    async
  {
    // In a separate process, because the loops of other suites' servers are busy.
    await #expect(processExitsWith: .success) {
      // Given responses from tasks, so that each request wakes its loop from another thread
      let clientCount = 4
      try await withServer(TestProvider(), configure: { $0.workers = 2 }) { server in
        // A thread sets its name after its start.
        var before: [String: Int] = [:]
        try await eventually("two loops") {
          before = try EventLoopTests.loopTimes()
          return before.count == 2
        }
        // When
        let threads = try (0..<clientCount).map { _ in
          try OwnThread(name: "test-client", rank: .foreground) { [port = server.port] in
            for _ in 0..<20 {
              guard let client = try? HTTPClient(port: port, timeout: 10) else { return }
              for _ in 0..<50 { _ = try? client.get(imageTarget) }
            }
          }
        }
        for thread in threads { thread.join() }
        #expect(server.figures.total >= clientCount * 1_000)
        // Then its loops use no processor time
        try await eventually("the loops sleep") {
          before = try EventLoopTests.loopTimes()
          try await Task.sleep(for: .milliseconds(100))
          return try EventLoopTests.loopTimes() == before
        }
      }
    }
  }

  /// Processor time in nanoseconds of each event loop's thread, by thread.
  private static func loopTimes() throws -> [String: Int] {
    var times: [String: Int] = [:]
    for thread in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task") {
      func text(_ name: String) -> String {
        let bytes = try? Data(contentsOf: URL(filePath: "/proc/self/task/\(thread)/\(name)"))
        return String(decoding: bytes ?? Data(), as: UTF8.self)
      }
      guard text("comm").hasPrefix("pictor-http-") else { continue }
      times[thread] = Int(try #require(text("schedstat").split(separator: " ").first))
    }
    return times
  }

  /// Runs `body` with `count` idle connections to a server with one event loop. The function passed
  /// to `body` blocks the loop during an action.
  private func withCrowd(
    _ count: Int,
    body: (Server, [HTTPClient], (() throws -> Void) async throws -> Void) async throws -> Void
  ) async throws {
    let provider = HoldingProvider()
    try await withServer(
      provider,
      configure: { configuration in
        configuration.workers = 1
        configuration.idleTimeout = .seconds(60)
        configuration.headerTimeout = .seconds(60)
      },
      body: { server in
        let clients = try (0..<count).map { _ in try HTTPClient(port: server.port, timeout: 10) }
        for client in clients { _ = try client.get("/nothing") }
        try await body(server, clients) { change in
          let holder = try HTTPClient(port: server.port, timeout: 10)
          try holder.send(
            HTTPClient.text("GET", target: imageTarget, headers: ["Connection": "close"]))
          try await eventually { provider.isHolding.load(ordering: .relaxed) }
          try change()
          provider.release.post()
          #expect(try holder.readAnswer().status == 200)
        }
      })
  }
}
