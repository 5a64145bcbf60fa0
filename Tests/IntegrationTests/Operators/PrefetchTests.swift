// Prefetching with the real program: the command and its server, and the cache afterwards.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PrefetchTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private static let token = "0123456789abcdef"
  private let pictor: PictorProcess

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    pictor = try PictorProcess(in: folder, ["--admin.tokens", Self.token])
  }

  /// Starts `pictor prefetch` with these lines.
  private func prefetch(_ lines: [String]) throws -> PictorProcess {
    try folder.write("list", bytes: Array(lines.map { $0 + "\n" }.joined().utf8))
    return try PictorProcess(
      in: folder,
      ["prefetch", folder.path + "/list", "--server.port", "\(pictor.port)"],
      environment: ["PICTOR_ADMIN_TOKENS": Self.token], isServer: false)
  }

  /// The server's status of all lists.
  private func prefetches() throws -> [PrefetchStatus] {
    let answer = try pictor.connect().get(
      "/admin/prefetch", headers: ["Authorization": "Bearer \(Self.token)"])
    return try JSONDecoder().decode([String: [PrefetchStatus]].self, from: Data(answer.body))[
      "prefetches"] ?? []
  }

  @Test func `prefetched images are hits and are skipped by the next prefetch`() throws {
    for number in 0..<5 {
      origin.serve("/\(number).jpg", bytes: try TestImages.jpeg(width: 30 + number, height: 20))
    }
    let lines = (0..<5).map { origin.target("/\($0).jpg", adding: "&w=10") }
    let first = try prefetch(lines)
    #expect(try first.end(0) == 0)
    #expect(first.log.contains("5 images, 5 loaded, 0 skipped, 0 failed"), "\(first.log)")
    let answer = try pictor.get(lines[2])
    #expect(answer["cache-status"] == "pictor; hit; detail=memory")
    let again = try prefetch(lines)
    #expect(try again.end(0) == 0)
    #expect(again.log.contains("5 images, 0 loaded, 5 skipped, 0 failed"), "\(again.log)")
    #expect(origin.totalRequests == 5)
    let figures = try pictor.stats().prefetch
    #expect(figures.finished == 5 && figures.skipped == 5 && figures.failed == 0)
    #expect(figures.lists == 0 && figures.waiting == 0 && figures.running == 0)
  }

  @Test func `invalid lines and missing images are reported, and the other lines are loaded`()
    throws
  {
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let command = try prefetch([
      origin.url("/absent.jpg"), "ftp://nowhere/", origin.target("/a.jpg", adding: "&ww=1"),
      origin.url("/a.jpg"), origin.url("/a.jpg"),
    ])
    #expect(try command.end(0) == 1)
    #expect(command.log.contains("5 images, 1 loaded, 1 skipped, 3 failed"), "\(command.log)")
    #expect(command.log.contains("failed: 1 source_not_found\n"))
    #expect(command.log.contains("line 1: source_not_found: the source does not exist (404)\n"))
    #expect(command.log.contains("line 2: invalid_url: "))
    #expect(
      command.log.contains("line 3: unknown_parameter: unknown parameter 'ww'; did you mean w?\n"))
  }

  @Test func `Ctrl-C cancels the list and its download`() throws {
    origin.route("/a.jpg", to: .silence)
    let command = try prefetch([origin.url("/a.jpg"), origin.url("/b.jpg")])
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    #expect(try command.end(SIGINT) == 130)
    #expect(command.log.contains("cancelled after "), "\(command.log)")
    #expect(command.log.contains("not tried: 2\n"))
    try pictor.waitFor("the download is cancelled") {
      $0.downloads.running == 0 && $0.prefetch.lists == 0 && $0.prefetch.running == 0
    }
    #expect(try prefetches().map(\.state) == [.cancelled])
    #expect(origin.requests(to: "/b.jpg") == 0)
  }

  @Test func `a stopping server ends prefetch lists without waiting`() throws {
    origin.route("/a.jpg", to: .silence)
    let command = try prefetch([origin.url("/a.jpg")])
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    #expect(try pictor.end() == 0)
    #expect(try command.end(0) == 1)
  }
}
