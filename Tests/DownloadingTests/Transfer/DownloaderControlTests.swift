// DownloaderControlTests: tests of priorities, order, pauses and the list of loads in Downloader.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderControlTests {
  private let body: [UInt8] = [1, 2, 3]

  /// Fills the only slot with one load, then adds others one by one. Returns the order of fetching.
  private func order(
    of loads: [(query: String, priority: any WorkPriority)],
    _ change: (inout DownloaderConfiguration) -> Void = { _ in },
    whileTheyWait act: (Downloader) async throws -> Void = { _ in }
  ) async throws -> [String] {
    let origin = try Origin()
    let gate = Gate()
    origin.route("/held", to: .hold(gate, then: .ok(body)))
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader {
      $0.limit = 1
      change(&$0)
    }
    let held = Task { try await downloader.load(origin.url("/held")) }
    try await eventually("the place is taken") { origin.activeRequests == 1 }
    var tasks: [Task<LoadResult, any Error>] = []
    for (number, load) in loads.enumerated() {
      let request = LoadRequest(
        url: try SourceURL(parsing: origin.url("/a?\(load.query)")), priority: load.priority)
      tasks.append(Task { try await downloader.load(request) })
      try await eventually("it waits") { downloader.figures.waiting == number + 1 }
    }
    try await act(downloader)
    gate.open()
    _ = try await held.value
    for task in tasks { _ = try await task.value }
    return origin.received(at: "/a").map { String($0.target.dropFirst(3)) }
  }

  @Test func `loads of high priority start first, then normal, then low`() async throws {
    let loads: [(String, any WorkPriority)] = [
      ("l", TestPriority(.low)), ("n1", TestPriority(.normal)), ("h", TestPriority(.high)),
      ("n2", TestPriority(.normal)),
    ]
    #expect(try await order(of: loads) == ["h", "n1", "n2", "l"])
  }

  @Test func `loads start last-in, first-out if configured`() async throws {
    let loads = ["1", "2", "3"].map { ($0, TestPriority(.normal) as any WorkPriority) }
    #expect(try await order(of: loads, { $0.order = .lifo }) == ["3", "2", "1"])
  }

  @Test func `a waiting load whose priority is raised moves up`() async throws {
    let prefetched = TestPriority(.low)
    let loads: [(String, any WorkPriority)] = [
      ("1", TestPriority(.normal)), ("2", prefetched), ("3", TestPriority(.normal)),
    ]
    let raised = try await order(
      of: loads,
      whileTheyWait: { downloader in
        prefetched.raise(to: .high)
        try await eventually("the list tells of it") {
          downloader.downloads().map(\.priority) == ["normal", "normal", "high", "normal"]
        }
      })
    #expect(raised == ["2", "1", "3"])
  }

  @Test func `while paused no load starts, and running loads finish`() async throws {
    // Given
    let origin = try Origin()
    let gate = Gate()
    origin.route("/held", to: .hold(gate, then: .ok(body)))
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader()
    async let held = downloader.load(origin.url("/held"))
    try await eventually("one runs") { origin.activeRequests == 1 }
    // When
    downloader.pause()
    async let next = downloader.load(origin.url("/a"))
    try await eventually("one waits") { downloader.figures.waiting == 1 }
    gate.open()
    // Then
    #expect(try await held.file.bytes == body)
    #expect(downloader.figures.paused == true && downloader.figures.running == 0)
    #expect(downloader.figures.waiting == 1 && origin.requests(to: "/a") == 0)
    // When
    downloader.resume()
    // Then
    #expect(try await next.file.bytes == body)
    #expect(downloader.figures.paused == false)
  }

  @Test func `a pause does not extend the queue time-out`() async throws {
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader { $0.queueTimeout = .milliseconds(50) }
    downloader.pause()
    let failure = await downloader.failure(of: origin.url("/a"))
    #expect(failure?.decidingKey == "download.timeout")
    #expect(origin.totalRequests == 0)
  }

  @Test func `observers receive each step of a load, with its end last`() async throws {
    // Given
    let origin = try Origin()
    let gate = Gate()
    origin.route("/a", to: .ok(body, holdingAfter: 2, at: gate))
    let downloader = try makeDownloader()
    let seen = Lock<[DownloadStatus]>([])
    var observation: Observation? = downloader.observeDownloads { status in
      seen.withLock { $0.append(status) }
    }
    // When
    async let load = downloader.load(origin.url("/a"))
    try await eventually("some of it is here") { seen.withLock { $0.last?.received == 2 } }
    gate.open()
    _ = try await load
    _ = await downloader.failure(of: origin.url("/missing"))
    try await eventually("its end is told") { seen.withLock { $0.last?.state == .failed } }
    // Then
    let (first, second) = seen.withLock { all in
      (all.filter { $0.url.hasSuffix("/a") }, all.filter { !$0.url.hasSuffix("/a") })
    }
    #expect(first.map(\.state).first == .waiting && first.map(\.state).last == .finished)
    #expect(first.map(\.received) == first.map(\.received).sorted())
    #expect(first.last?.received == 3 && first.last?.expected == 3)
    #expect(second.last?.error == "source_not_found")
    // Observers are not called after the observation is released.
    observation = nil
    let count = seen.withLock { $0.count }
    _ = try await downloader.load(origin.url("/a"))
    #expect(seen.withLock { $0.count } == count)
    withExtendedLifetime(observation) {}
  }

  @Test func `the list shows running loads with their progress, and waiting loads`() async throws {
    // Given
    let origin = try Origin()
    let gate = Gate()
    let host = "127.0.0.1:\(origin.port)"
    origin.route("/known", to: .ok(body, holdingAfter: 2, at: gate))
    let steps: [OriginReply.Step] = [
      .send(OriginReply.chunkedHead), .send(OriginReply.chunk([9])), .hold(gate),
      .send(Array("0\r\n\r\n".utf8)),
    ]
    origin.route("/unknown", to: OriginReply(steps))
    origin.route(
      "/error",
      to: OriginReply([
        .send(OriginReply.head(404, headers: ["Content-Length: 9"])), .hold(gate),
        .send(body + body + body),
      ]))
    let downloader = try makeDownloader { $0.limit = 3 }
    // When
    async let known = downloader.load(origin.url("/known?q=1"), priority: .high)
    try await eventually("one runs") { downloader.figures.running == 1 }
    async let unknown = downloader.load(origin.url("/unknown"))
    try await eventually("two run") { downloader.figures.running == 2 }
    async let error = downloader.failure(of: origin.url("/error"))
    try await eventually("three run") { downloader.figures.running == 3 }
    async let waiting = downloader.failure(of: origin.url("/waiting"))
    try await eventually("bytes have come") {
      downloader.downloads().map(\.received) == [2, 1, 0, 0]
    }
    // Then
    let list = downloader.downloads()
    #expect(list.map(\.expected) == [3, -1, -1, -1])
    #expect(
      list.map(\.url) == ["/known?q=1", "/unknown", "/error", "/waiting"].map { origin.url($0) })
    #expect(list.map(\.host) == [host, host, host, host])
    #expect(list.map(\.priority) == ["high", "normal", "normal", "normal"])
    #expect(list.map(\.state) == [.running, .running, .running, .waiting])
    #expect(list.allSatisfy { $0.seconds >= 0 && $0.waiters == 1 })
    gate.open()
    _ = try await (known, unknown)
    #expect(await error == .sourceNotFound(status: 404))
    #expect(await waiting == .sourceNotFound(status: 404))
    #expect(downloader.downloads() == [])
    downloader.shutDown()
    #expect(downloader.downloads() == [])
  }

  @Test func `a redirected transfer is listed under its current host`() async throws {
    let origin = try Origin()
    let other = try Origin()
    let gate = Gate()
    origin.route("/a", to: .redirect(to: other.url("/b")))
    other.route("/b", to: .hold(gate, then: .ok(body)))
    let downloader = try makeDownloader()
    async let load = downloader.load(origin.url("/a"))
    try await eventually("it is there") { other.activeRequests == 1 }
    let status = try #require(downloader.downloads().first)
    #expect(status.url == origin.url("/a") && status.host == "127.0.0.1:\(other.port)")
    gate.open()
    _ = try await load
  }
}
