// DownloaderClientTests: tests of Downloader with more loads of one client than its share.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct DownloaderClientTests {
  private let body = [UInt8](repeating: 9, count: 1_000)
  private let greedy = LoadClient.network(.v4(1))
  private let modest = LoadClient.network(.v4(2))

  @Test func `loads of a client above its share delay neither others nor what others join`()
    async throws
  {
    // Given two places, and loads of one client that wait in the middle of their bodies
    let (origin, gate) = (try Origin(), Gate())
    for name in 1...4 { origin.route("/\(name)", to: .ok(body, holdingAfter: 10, at: gate)) }
    origin.serve("/joined", bytes: body)
    origin.serve("/a", bytes: body)
    let downloader = try makeDownloader {
      $0.limit = 2
      $0.limitPerClient = 1
      // None of them counts as stalled.
      $0.pace.silentAfter = .seconds(60)
      $0.pace.window = .seconds(60)
    }
    func load(_ path: String, _ priority: TestPriority) -> Task<LoadResult, any Error> {
      let url = origin.url(path)
      return Task {
        try await downloader.load(LoadRequest(url: try SourceURL(parsing: url), priority: priority))
      }
    }
    let held = (1...4).map { load("/\($0)", TestPriority(.normal, clients: [greedy])) }
    try await eventually("two run") {
      downloader.figures.running == 2 && downloader.figures.waiting == 2
    }
    #expect(downloader.figures.aboveShare == 1 && downloader.figures.limitPerClient == 1)
    let shared = TestPriority(.normal, clients: [greedy])
    let joined = load("/joined", shared)
    try await eventually("it waits") { downloader.figures.waiting == 3 }
    // Then
    _ = try await load("/a", TestPriority(.normal, clients: [modest])).value
    #expect(downloader.figures.waiting == 3)
    shared.add(modest)
    _ = try await joined.value
    #expect(downloader.figures.waiting == 2)
    gate.open()
    for task in held { _ = try await task.value }
    #expect(downloader.figures.aboveShare == 0 && downloader.figures.succeeded == 6)
  }

  @Test(arguments: [(0, 16), (5, 5), (64, 64)])
  func `the share is a quarter of all places, or as configured`(key: Int, share: Int) throws {
    let downloader = try makeDownloader { $0.limitPerClient = key }
    #expect(downloader.figures.limitPerClient == share)
  }
}
