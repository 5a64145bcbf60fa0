// Prefetching with the real program: the command beside its server, and what is there afterwards.

import FoundationEssentials
import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct PrefetchTests {
  private static let token = "0123456789abcdef"
  private let folder: TemporaryFolder
  private let origin: Origin
  private let pictor: PictorProcess

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    pictor = try PictorProcess(in: folder, ["--admin.tokens", Self.token])
  }

  /// `pictor prefetch` of these lines, as it was started.
  private func prefetch(_ lines: [String], _ options: [String] = []) throws -> PictorProcess {
    try folder.write("list", Array(lines.map { $0 + "\n" }.joined().utf8))
    return try PictorProcess(
      in: folder,
      ["prefetch", folder.path + "/list", "--server.port", "\(pictor.port)"] + options,
      environment: ["PICTOR_ADMIN_TOKENS": Self.token], isServer: false)
  }

  /// What the server says of the lists it had.
  private func prefetches() throws -> [PrefetchStatus] {
    let answer = try pictor.connect().get(
      "/admin/prefetch", headers: ["Authorization": "Bearer \(Self.token)"])
    return try JSONDecoder().decode([String: [PrefetchStatus]].self, from: Data(answer.body))[
      "prefetches"] ?? []
  }

  @Test func `what the command had loaded is there, and is skipped the next time`() throws {
    for number in 0..<5 {
      origin.serve("/\(number).jpg", try TestImages.jpeg(width: 30 + number, height: 20))
    }
    let lines = (0..<5).map { origin.target("/\($0).jpg", "&w=10") }
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
    #expect((figures.finished, figures.skipped, figures.failed) == (5, 5, 0))
    #expect((figures.lists, figures.waiting, figures.running) == (0, 0, 0))
  }

  @Test func `bad lines and missing images are told, and the rest is loaded`() throws {
    origin.serve("/a.jpg", try TestImages.jpeg(width: 30, height: 20))
    let command = try prefetch([
      origin.url("/absent.jpg"), "ftp://nowhere/", origin.target("/a.jpg", "&ww=1"),
      origin.url("/a.jpg"), origin.url("/a.jpg"),
    ])
    #expect(try command.end(0) == 1)
    #expect(command.log.contains("5 images, 1 loaded, 1 skipped, 3 failed"), "\(command.log)")
    #expect(command.log.contains("failed: 1 source_not_found\n"))
    #expect(command.log.contains("line 1: source_not_found: the source does not exist (404)\n"))
    #expect(command.log.contains("line 2: invalid_url: "))
    #expect(command.log.contains("line 3: unknown_parameter: there is no parameter 'ww'\n"))
  }

  @Test func `one host is asked for one image at a time, and clients go first`() throws {
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    for number in 0..<4 {
      origin.route("/\(number).jpg", .hold(gate, then: .ok(image)))
    }
    origin.serve("/client.jpg", image)
    let command = try prefetch((0..<4).map { origin.url("/\($0).jpg") })
    try pictor.waitFor("the first is loaded") { $0.downloads.running == 1 }
    #expect(try pictor.get(origin.target("/client.jpg")).status == 200)
    #expect(origin.peakRequests == 2)
    #expect(try pictor.stats().prefetch.waiting == 3)
    gate.open()
    #expect(try command.end(0) == 0)
    #expect(origin.peakRequests == 2)
  }

  @Test func `Ctrl-C cancels the list and its download`() throws {
    origin.route("/a.jpg", .silence)
    let command = try prefetch([origin.url("/a.jpg"), origin.url("/b.jpg")])
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    #expect(try command.end(SIGINT) == 130)
    #expect(command.log.contains("cancelled after "), "\(command.log)")
    #expect(command.log.contains("not tried: 2\n"))
    try pictor.waitFor("the download is given up") {
      $0.downloads.running == 0 && $0.prefetch.lists == 0 && $0.prefetch.running == 0
    }
    #expect(try prefetches().map(\.state) == [.cancelled])
    #expect(origin.requests(to: "/b.jpg") == 0)
  }

  @Test func `a server that stops ends its lists and does not wait for them`() throws {
    origin.route("/a.jpg", .silence)
    let command = try prefetch([origin.url("/a.jpg")])
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    #expect(try pictor.end() == 0)
    #expect(try command.end(0) == 1)
  }

  @Test func `a wrong token is one clear line and exit 1`() throws {
    let command = try prefetch(
      [origin.url("/a.jpg")], ["--admin.tokens", "fedcba9876543210"])
    #expect(try command.end(0) == 1)
    #expect(
      command.complaints == [
        "pictor: 127.0.0.1 port \(pictor.port) does not accept the first token of admin.tokens"
      ])
  }

  @Test(arguments: [["prefetch"], ["prefetch", "a", "b"], ["prefetch", "a", "--nope"]])
  func `a wrong use is one clear line and exit 2`(options: [String]) throws {
    let command = try PictorProcess(in: folder, options, isServer: false)
    #expect(try command.end(0) == 2)
    #expect(command.complaints.count == 1)
  }
}
