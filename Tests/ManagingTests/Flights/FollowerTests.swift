// FollowerTests: tests of requests that join a flight without a task.

import Core
import TestSupport
import Testing

@testable import Managing

@Suite(.onOwnThreads) final class FollowerTests: ManagedTests {
  private typealias Answer = Result<ImageDelivery, ImageError>

  private let answers = Lock<[Answer]>([])

  /// Joins the flight of a request. Returns how to leave it; `nil` without a flight.
  private func follow(
    _ request: ImageRequest, for client: LoadClient = .network(.v4(7))
  ) -> (@Sendable () -> Void)? {
    manager.follow(request, for: client) { [answers] answer in
      answers.withLock { $0.append(answer) }
    }
  }

  private func errors() -> [ImageError] {
    answers.withLock { answers in
      answers.compactMap { if case .failure(let error) = $0 { error } else { nil } }
    }
  }

  @Test func `without a flight there is nothing to follow`() throws {
    #expect(follow(try request()) == nil)
    #expect(answers.withLock { $0.isEmpty })
  }

  @Test func `followers share one delivery, and count as coalesced requests`() async throws {
    // Given
    let began = asking(try request())
    try await eventually { self.loader.started.value == 1 }
    // When
    for _ in 0..<3 { _ = try #require(follow(try request())) }
    #expect(follow(try request(scale: 0.5)) == nil, "another variant")
    #expect(manager.figures.waiting == 5, "four for the variant, a flight for the source")
    openAll()
    let first = try await began.value
    // Then
    try await eventually { self.answers.withLock { $0.count } == 3 }
    let deliveries = try answers.withLock { try $0.map { try $0.get() } }
    #expect(deliveries.allSatisfy { $0 === deliveries[0] && $0.isShared })
    #expect(deliveries[0].variant === first.variant && !first.isShared)
    #expect(deliveries[0].takeTimings(), "also if the request that began has left")
    #expect(!first.takeTimings() && !deliveries[1].takeTimings(), "once")
    #expect(first.cacheStatus.headerValue == "pictor; fwd=uri-miss; fwd-status=200; stored")
    #expect(
      deliveries[0].cacheStatus.headerValue
        == "pictor; fwd=uri-miss; fwd-status=200; stored; collapsed")
    #expect(loader.started.value == 1 && processor.started.value == 1)
    #expect(manager.figures.coalesced == 3 && manager.figures.waiting == 0)
    #expect(follow(try request()) == nil, "the flight has ended")
  }

  @Test func `followers get the error of their flight`() async throws {
    let began = asking(try request())
    try await eventually { self.loader.started.value == 1 }
    _ = try #require(follow(try request()))
    loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    openAll()
    await #expect(throws: ImageError.self) { try await began.value }
    try await eventually { self.errors().count == 1 }
    #expect(errors().first?.code == ImageError.sourceNotFound(status: 404).code)
  }

  @Test func `the last to leave cancels the work, follower or task`() async throws {
    // Given a flight that only a follower waits for
    let began = asking(try request())
    try await eventually { self.loader.started.value == 1 }
    let leave = try #require(follow(try request()))
    began.cancel()
    try await eventually { self.manager.figures.waiting == 2 }
    #expect(manager.figures.cancelled == 0)
    // When it leaves, twice
    leave()
    leave()
    // Then it is called back once, and the variant's and the source's flight are cancelled.
    #expect(errors().map(\.code) == [ImageError.cancelled.code])
    try await eventually { self.manager.figures.cancelled == 2 }
    #expect(manager.figures.variants == 0 && manager.figures.waiting == 0)
    _ = await began.result
  }

  @Test func `a follower that leaves does not end the flight of others`() async throws {
    let began = asking(try request())
    try await eventually { self.loader.started.value == 1 }
    let leave = try #require(follow(try request()))
    leave()
    #expect(errors().count == 1 && manager.figures.cancelled == 0)
    openAll()
    _ = try await began.value
    #expect(answers.withLock { $0.count } == 1)
  }

  @Test func `an operator's cancellation reaches followers, and counts them`() async throws {
    let began = asking(try request())
    try await eventually { self.loader.started.value == 1 }
    for _ in 0..<2 { _ = try #require(follow(try request())) }
    #expect(manager.cancelAll() == 3)
    #expect(errors().map(\.code) == [String](repeating: ImageError.revoked.code, count: 2))
    await #expect(throws: ImageError.self) { try await began.value }
  }

  @Test func `a follower raises the priority, brings its client and detaches`() async throws {
    // Given
    let began = asking(try request { $0.priority = .low })
    try await eventually { self.loader.started.value == 1 }
    let priority = try #require(loader.requests.withLock { $0.first?.priority })
    let raised = Lock<[LoadPriority]>([])
    let clients = Lock<[LoadClient]>([])
    #expect(priority.observe { value in raised.withLock { $0.append(value) } } == .low)
    _ = priority.observeClients { client in clients.withLock { $0.append(client) } }
    // When
    let request = try request {
      $0.priority = .high
      $0.isDetached = true
    }
    let leave = try #require(follow(request, for: .network(.v4(9))))
    // Then
    #expect(raised.withLock { $0 } == [.high])
    #expect(clients.withLock { $0 } == [.network(.v4(9))])
    #expect(priority.waiters == 2)
    // When both leave, then the work continues.
    leave()
    began.cancel()
    _ = await began.result
    #expect(manager.figures.cancelled == 0 && manager.unattendedCount == 1)
    openAll()
    try await eventually { self.manager.unattendedCount == 0 }
    #expect(manager.cachedVariant(for: request.key) != nil)
  }

  @Test func `a flight whose source may not be stored is not followed any more`() async throws {
    // Given a flight that waits for the worker with a source that is only for its participants
    loader.cacheControl.withLock { $0 = "no-store" }
    loader.gate.open()
    let began = asking(try request())
    try await eventually { self.processor.started.value == 1 }
    // Then
    #expect(follow(try request()) == nil)
    openAll()
    _ = try await began.value
  }

  @Test func `no follower is lost while flights begin and end`() async throws {
    openAll()
    let request = try request { $0.cache = .bypass }
    let followed = Count()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<4 {
        group.addTask { [manager] in
          for _ in 0..<100 { _ = try await manager.variant(for: request) }
        }
        group.addTask { [manager, answers] in
          for round in 0..<2_000 {
            let leave = manager.follow(request, for: .background) { answer in
              answers.withLock { $0.append(answer) }
            }
            guard let leave else { continue }
            followed.add()
            if round % 3 == 0 { leave() }
          }
        }
      }
      try await group.waitForAll()
    }
    try await eventually { self.manager.figures.waiting == 0 }
    #expect(answers.withLock { $0.count } == followed.value, "each is called back once")
  }
}
