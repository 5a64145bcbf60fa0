// DownloaderBoundsTests: tests of Downloader's limits, its queue, and cancellation.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderBoundsTests {
  private let body = [UInt8](repeating: 9, count: 1_000)

  @Test func `concurrent transfers never exceed the limit per host and in total`() async throws {
    // Given
    let first = try Origin()
    let second = try Origin()
    let third = try Origin()
    let gate = Gate()
    let origins = [first, second, third]
    for origin in origins { origin.route("/a", to: .hold(gate, then: .ok(body))) }
    let downloader = try makeDownloader {
      $0.limit = 5
      $0.limitPerHost = 2
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      // When
      for number in 0..<8 {
        for origin in origins {
          group.addTask { _ = try await downloader.load(origin.url("/a?\(number)")) }
        }
      }
      try await eventually("five run, the rest waits") {
        origins.map(\.activeRequests).reduce(0, +) == 5 && downloader.figures.waiting == 19
      }
      #expect(downloader.figures.running == 5)
      gate.open()
      try await group.waitForAll()
    }
    // Then
    for origin in origins {
      #expect(origin.peakRequests <= 2)
      #expect(origin.totalRequests == 8)
    }
    #expect(downloader.figures.waiting == 0 && downloader.figures.running == 0)
    #expect(downloader.figures.limit == 5 && downloader.figures.limitPerHost == 2)
  }

  @Test func `a full queue refuses a load at once`() async throws {
    // Given
    let origin = try Origin()
    origin.route("/held", to: .silence)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.queueLimit = 1
    }
    let held = (0..<2).map { _ in Task { try await downloader.load(origin.url("/held")) } }
    try await eventually("one runs, one waits") {
      origin.activeRequests == 1 && downloader.figures.waiting == 1
    }
    // When
    let refused = await downloader.failure(of: origin.url("/a"))
    // Then
    #expect(refused?.decidingKey == "download.queue_limit")
    #expect(downloader.figures.waiting == 1)
    for task in held { task.cancel() }
    for task in held { #expect(await task.result.failure as? ImageError == .cancelled) }
  }

  @Test func `the transfer time-out starts with the transfer, not with the wait`() async throws {
    // Given: a slot that is in use for longer than a transfer may take
    let origin = try Origin()
    origin.route("/held", to: .silence)
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader {
      $0.limit = 1
      $0.timeout = .milliseconds(1_500)
    }
    async let held = downloader.failure(of: origin.url("/held"))
    try await eventually("the place is taken") { origin.requests(to: "/held") == 1 }
    // When
    let download = try await downloader.load(origin.url("/a"))
    // Then
    #expect(download.file.count == body.count)
    #expect(await held?.code == "source_timeout")
  }

  @Test func `cancelling a load closes its transfer and starts the next one`() async throws {
    // Given
    let origin = try Origin()
    let gate = Gate()
    origin.route("/held", to: .ok(body, holdingAfter: 10, at: gate))
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader { $0.limit = 1 }
    let held = Task { try await downloader.load(origin.url("/held")) }
    try await eventually("the place is taken") { origin.activeRequests == 1 }
    async let next = downloader.load(origin.url("/a"))
    try await eventually("one waits") { downloader.figures.waiting == 1 }
    // When
    held.cancel()
    // Then
    #expect(await held.result.failure as? ImageError == .cancelled)
    #expect(try await next.file.count == body.count)
    try await eventually("the origin sees it") { origin.clientsGone == 1 }
    #expect(downloader.figures.cancelled == 1)
  }

  @Test func `cancelling a waiting load removes it from the queue`() async throws {
    let origin = try Origin()
    let gate = Gate()
    origin.route("/held", to: .hold(gate, then: .ok(body)))
    let downloader = try makeDownloader { $0.limit = 1 }
    async let held = downloader.load(origin.url("/held"))
    try await eventually("the place is taken") { origin.activeRequests == 1 }
    let waiting = Task { try await downloader.load(origin.url("/never")) }
    try await eventually("one waits") { downloader.figures.waiting == 1 }
    waiting.cancel()
    #expect(await waiting.result.failure as? ImageError == .cancelled)
    #expect(downloader.figures.waiting == 0)
    gate.open()
    _ = try await held
    #expect(origin.requests(to: "/never") == 0)
  }

  @Test func `loads cancelled at random moments end exactly once and leave no state`()
    async throws
  {
    // Given
    let origin = try Origin()
    origin.serve("/a", bytes: body)
    origin.route("/slow", to: .trickle(Array(body.prefix(20)), milliseconds: 1))
    let downloader = try makeDownloader { $0.limit = 8 }
    // When
    let answers = await withTaskGroup(of: Bool.self) { group in
      for number in 0..<400 {
        group.addTask {
          let path = number % 2 == 0 ? "/a" : "/slow"
          let load = Task { try await downloader.load(origin.url(path)) }
          for _ in 0..<(number % 40) { await Task.yield() }
          load.cancel()
          return await load.result.failure.map { $0 as? ImageError == .cancelled } ?? true
        }
      }
      return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
    }
    // Then
    #expect(answers == 400)
    let figures = downloader.figures
    #expect(figures.running == 0 && figures.waiting == 0)
    #expect(figures.succeeded + figures.cancelled == 400)
    #expect(try await downloader.load(origin.url("/a")).file.count == body.count)
  }
}
