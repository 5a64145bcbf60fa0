// EventLoopTests: tests that event loops serve all ready connections, and sleep when idle.

import FoundationEssentials
import Model
import Platform
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
  func `a crowd that asks while its worker is busy is answered without anybody else's coming`(
    count: Int
  ) async throws {
    try await withCrowd(count) { _, clients, holdWhile in
      try await holdWhile {
        for client in clients { try client.send(HTTPClient.text("GET", imageTarget)) }
      }
      for client in clients { #expect(try client.readAnswer().status == 200) }
    }
  }

  @Test(arguments: [127, 128, 129, 256])
  func `a crowd that leaves while its worker is busy is noticed without anybody else's coming`(
    count: Int
  ) async throws {
    try await withCrowd(count) { server, clients, holdWhile in
      try await holdWhile { for client in clients { client.close() } }
      #expect(await eventually { server.figures.connections == 0 })
    }
  }

  @Test func `loops that were woken many times from elsewhere sleep once nothing is left to do`()
    async throws
  {
    // Given answers that tasks bring, so that each request wakes its loop from another thread
    let clientCount = 4
    let others = Set(try loopTimes().keys)
    try await withServer(TestProvider(), configure: { $0.workers = 2 }) { server in
      // The loops of servers in other suites run meanwhile. A thread names itself after its start.
      var loops: Set<String> = []
      #expect(
        await eventually {
          loops = Set((try? loopTimes().keys).map(Array.init) ?? []).subtracting(others)
          return loops.count >= 2
        })
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
      // Then its loops take no time of a processor
      var before = try loopTimes()
      var asleep = 0
      for _ in 0..<100 where asleep < loops.count {
        try await Task.sleep(for: .milliseconds(100))
        let now = try loopTimes()
        asleep = loops.count { now[$0] != nil && now[$0] == before[$0] }
        before = now
      }
      #expect(asleep == loops.count)
    }
  }

  /// Processor time in nanoseconds of each event loop's thread, by thread.
  private func loopTimes() throws -> [String: Int] {
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
    _ body: (Server, [HTTPClient], (() throws -> Void) async throws -> Void) async throws -> Void
  ) async throws {
    let provider = HoldingProvider()
    try await withServer(
      provider,
      configure: { configuration in
        configuration.workers = 1
        configuration.idleTimeout = .seconds(60)
        configuration.headerTimeout = .seconds(60)
      },
      { server in
        let clients = try (0..<count).map { _ in try HTTPClient(port: server.port, timeout: 10) }
        for client in clients { _ = try client.get("/nothing") }
        try await body(server, clients) { change in
          let holder = try HTTPClient(port: server.port, timeout: 10)
          try holder.send(
            HTTPClient.text("GET", imageTarget, headers: ["Connection": "close"]))
          #expect(await eventually { provider.isHolding.load(ordering: .relaxed) })
          try change()
          provider.release.post()
          #expect(try holder.readAnswer().status == 200)
        }
      })
  }
}
