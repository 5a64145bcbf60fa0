// SuspendedRequestEndTests: which event ends a suspended request.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct SuspendedRequestEndTests {
  /// Work that other requests do: how to end it, and how often it was left.
  private final class Shared: Sendable {
    let completion = Lock<(@Sendable (Outcome) -> Void)?>(nil)
    let left = Counter()

    func join(_ client: LoadClient, _ end: @escaping @Sendable (Outcome) -> Void)
      -> @Sendable () -> Void
    {
      completion.withLock { $0 = end }
      return { self.left.add() }
    }

    func end(_ error: ImageError) { completion.withLock { $0 }?(.failure(error)) }
  }

  private let work = Shared()

  /// Creates a request whose connection is not suspended, so that nothing resumes it.
  private func makeRequest() throws -> SuspendedRequest {
    SuspendedRequest(
      number: 1, connection: try #require(OpaquePointer(bitPattern: 8)), descriptor: -1,
      deadline: .max, monitor: try ConnectionMonitor(limit: 1, tick: 1_000),
      wake: try WakeSignal(), share: nil)
  }

  private func start(_ request: SuspendedRequest) {
    request.start({ () async throws(ImageError) in throw .cancelled }, joining: work.join)
  }

  private func error(of request: SuspendedRequest) -> ImageError? {
    if case .failure(let error)? = request.outcome { error } else { nil }
  }

  @Test func `the first end of a request decides, and cancels its work once`() throws {
    let request = try makeRequest()
    start(request)
    #expect(request.outcome == nil)
    request.interrupt(.failure(.deadlineExceeded))
    request.interrupt(.clientGone)
    work.end(.cancelled)
    #expect(error(of: request) == .deadlineExceeded)
    #expect(work.left.value == 1)
  }

  @Test func `work that ends first is not cancelled`() throws {
    let request = try makeRequest()
    start(request)
    work.end(.sourceNotFound(status: 404))
    request.interrupt(.clientGone)
    #expect(error(of: request) == .sourceNotFound(status: 404))
    #expect(work.left.value == 0)
  }

  @Test func `work that ends before its start is recorded is not cancelled`() throws {
    let request = try makeRequest()
    request.start({ () async throws(ImageError) in throw .cancelled }) { client, end in
      defer { end(.failure(.draining)) }
      return work.join(client, end)
    }
    #expect(error(of: request) == .draining)
    #expect(work.left.value == 0)
  }

  @Test func `work that starts after the request's end is cancelled at once`() throws {
    let request = try makeRequest()
    request.interrupt(.failure(.draining))
    start(request)
    #expect(work.left.value == 1)
  }
}
