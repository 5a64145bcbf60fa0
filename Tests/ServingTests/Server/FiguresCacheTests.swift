// FiguresCacheTests: how often the figures of /stats are computed.

import Core
import FoundationEssentials
import Synchronization
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct FiguresCacheTests {
  /// Milliseconds that a test moves, and the computations so far.
  private final class Counting: Sendable {
    let now = Atomic(1_000)
    let computed = Counter()

    func cache(_ lifetime: Duration) -> FiguresCache {
      FiguresCache(
        lifetime: lifetime, clock: { self.now.load(ordering: .relaxed) },
        compute: { isDraining in
          self.computed.add()
          var figures = Figures()
          figures.add("total", self.computed.value)
          return makeStats(figures, isDraining: isDraining)
        })
    }
  }

  private func total(_ json: CodedText) throws -> Int {
    try JSONDecoder().decode(Figures.self, from: Data(json.plain)).requests.total.whole
  }

  @Test func `the figures of the default lifetime are computed four times a second`() throws {
    let counting = Counting()
    let cache = counting.cache(ServerSettings().statsLifetime)
    var answers: Set<Int> = []
    for _ in 0..<1_000 {
      answers.insert(try total(cache.text(isDraining: false)))
      counting.now.wrappingAdd(10, ordering: .relaxed)
    }
    #expect(counting.computed.value == 40 && answers.count == 40)
  }

  @Test func `a stop is reported at once`() throws {
    let counting = Counting()
    let cache = counting.cache(.seconds(10))
    for isDraining in [false, true, true] {
      let text = String(decoding: try cache.text(isDraining: isDraining).plain, as: UTF8.self)
      #expect(text.contains(isDraining ? "\"draining\"" : "\"serving\""))
    }
    #expect(counting.computed.value == 2)
  }

  @Test func `without a lifetime each request gets new figures`() throws {
    let counting = Counting()
    let cache = counting.cache(.zero)
    for number in 1...5 { #expect(try total(cache.text(isDraining: false)) == number) }
  }

  @Test func `while one thread computes, the others get the previous figures`() async throws {
    // Given figures that are too old, and a computation that takes long
    let entered = Semaphore()
    let release = Semaphore()
    let counting = Counting()
    let cache = FiguresCache(
      lifetime: .milliseconds(250), clock: { counting.now.load(ordering: .relaxed) },
      compute: { isDraining in
        counting.computed.add()
        if counting.computed.value == 2 {
          entered.post()
          release.wait()
        }
        var figures = Figures()
        figures.add("total", counting.computed.value)
        return makeStats(figures, isDraining: isDraining)
      })
    #expect(try total(cache.text(isDraining: false)) == 1)
    counting.now.wrappingAdd(250, ordering: .relaxed)
    let slow = try OwnThread(name: "computes", rank: .foreground) {
      _ = try? cache.text(isDraining: false)
    }
    entered.wait()
    // Then
    for _ in 0..<100 { #expect(try total(cache.text(isDraining: false)) == 1) }
    release.post()
    slow.join()
    #expect(try total(cache.text(isDraining: false)) == 2)
    #expect(counting.computed.value == 2)
  }

  @Test(arguments: ["/stats", "/metrics"])
  func `a crowd of clients makes a server compute once in the lifetime`(path: String) async throws {
    let computed = Counter()
    try await withServer {
      $0.statsLifetime = .seconds(3_600)
      $0.workers = 4
    } stats: { figures, isDraining in
      computed.add()
      return makeStats(figures, isDraining: isDraining)
    } body: { server in
      let first = try HTTPClient(port: server.port).get(path)
      #expect(first.status == 200)
      let clients = try (0..<16).map { _ in try HTTPClient(port: server.port) }
      for client in clients {
        for _ in 0..<20 { try client.send(HTTPClient.text("GET", target: path)) }
      }
      for client in clients {
        for _ in 0..<20 { #expect(try client.readAnswer().body == first.body) }
      }
      #expect(try clients[0].head(path)["Content-Length"] == first["Content-Length"])
      #expect(computed.value == 1)
    }
  }
}
