// PrefetchCommandTests: the prefetch command against a test server.

import Configuring
import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads, .serialized) struct PrefetchCommandTests {
  let folder: TemporaryFolder
  let server: Origin
  let said = Lock((output: "", errors: ""))
  /// The current time of the command.
  let time = Lock(ContinuousClock.now)
  let interruption: Interruption

  init() throws {
    folder = try TemporaryFolder()
    server = try Origin()
    interruption = try Interruption()
    try folder.write("list", Array("http://a/1.jpg\n".utf8))
  }

  func json(_ text: String, status: Int = 200) -> OriginReply {
    .status(status, Array(text.utf8), headers: ["Content-Type: application/json"])
  }

  func progress(_ state: String, finished: Int, failed: Int = 0) -> OriginReply {
    json(
      """
      {"id": "7f", "state": "\(state)", "total": 4, "finished": \(finished), "skipped": 1,
       "failed": \(failed), "reasons": {}, "failures": [], "rate": 1, "seconds": 2}
      """)
  }

  /// Returns the exit status of `pictor prefetch`.
  func run(
    _ file: String? = nil, presets: [String] = [], port: Int? = nil, columns: Int? = nil,
    input: CInt = -1,
    _ change: (inout Configuration) -> Void = { _ in }
  ) async throws -> CInt {
    var configuration = Configuration()
    configuration.server.port = port ?? server.port
    configuration.admin.tokens = ["0123456789abcdef", "fedcba9876543210"]
    change(&configuration)
    let console = Console(
      output: { [said] text in said.withLock { $0.output += text } },
      errors: { [said] text in said.withLock { $0.errors += text } }, columns: { columns })
    let command = PrefetchCommand(
      configuration, list: ListFile(file ?? folder.path + "/list", input: input),
      presets: presets, console: console,
      pace: .init(now: { [time] in time.withLock { $0 } }, milliseconds: 1),
      interruption: interruption)
    return await withTaskExecutorPreference(BlockingExecutor.shared) { command.run() }
  }

  var errors: String { said.withLock { $0.errors } }
  var output: String { said.withLock { $0.output } }

  @Test func `it sends the list, watches it to its end and sums up`() async throws {
    server.route("/admin/prefetch", json(#"{"id": "7f", "total": 4}"#, status: 202))
    server.route("/admin/prefetch/7f") { request in
      request.number < 3
        ? progress("running", finished: request.number) : progress("finished", finished: 3)
    }
    #expect(try await run(presets: ["thumb", "a&b"], columns: 60) == 0)
    let sent = try #require(server.received(at: "/admin/prefetch").first)
    #expect(sent.method == "POST" && sent.target == "/admin/prefetch?preset=thumb&preset=a%26b")
    #expect(sent.headers["content-length"] == "15")
    #expect(sent.headers["content-type"] == "application/jsonl")
    #expect(sent.headers["authorization"] == "Bearer 0123456789abcdef")
    #expect(server.received(at: "/admin/prefetch/7f").map(\.method) == ["GET", "GET", "GET"])
    #expect(output == "finished after 2.0 s: 4 images, 3 loaded, 1 skipped, 0 failed\n")
    #expect(errors.hasPrefix("\r[") && errors.hasSuffix("\u{1B}[K\n"))
    #expect(errors.split(separator: "\r").count == 3)
  }

  @Test(arguments: [("finished", 2, 1), ("cancelled", 1, 0)])
  func `what failed or was cancelled is exit 1`(
    state: String, finished: Int, failed: Int
  ) async throws {
    server.route("/admin/prefetch", json(#"{"id": "7f", "total": 4}"#, status: 202))
    server.route("/admin/prefetch/7f", progress(state, finished: finished, failed: failed))
    #expect(try await run() == 1)
    #expect(output.hasPrefix("\(state) after"))
    #expect(errors.isEmpty, "no terminal, and nothing to say in so short a time")
  }

  @Test(arguments: [
    (401, "does not accept the first token of admin.tokens"),
    (404, "has no operators' paths: it was started without admin.tokens"),
    (413, "answered 413: too \u{FFFD} long"), (503, "answered 503: too \u{FFFD} long"),
  ])
  func `a refusal is one clear line`(status: Int, words: String) async throws {
    server.route(
      "/admin/prefetch",
      json(#"{"error": {"code": "x", "message": "too \u001b long"}}"#, status: status))
    #expect(try await run() == 1)
    #expect(errors == "pictor: 127.0.0.1 port \(server.port) \(words)\n")
    #expect(output.isEmpty)
  }

  @Test func `an answer that is no JSON is told by its status`() async throws {
    server.route("/admin/prefetch", .status(500, Array("<html>".utf8)))
    #expect(try await run() == 1)
    #expect(errors == "pictor: 127.0.0.1 port \(server.port) answered 500\n")
  }

  @Test func `a prefetch that is lost on the way is one clear line`() async throws {
    server.route("/admin/prefetch", json(#"{"id": "7f", "total": 4}"#, status: 202))
    #expect(try await run() == 1)
    #expect(errors == "pictor: the prefetch cannot be watched: the server no longer knows it\n")
  }

  @Test func `nobody there is one clear line`() async throws {
    server.stop()
    #expect(try await run() == 1)
    #expect(
      errors.hasPrefix(
        "pictor: cannot connect to 127.0.0.1 port \(server.port): Connection refused"))
  }

  @Test func `a server that goes in the middle is one clear line`() async throws {
    server.route("/admin/prefetch", OriginReply([.send(Array("HTTP/1.1 20".utf8)), .close]))
    #expect(try await run() == 1)
    #expect(
      errors == """
        pictor: the answer of 127.0.0.1 port \(server.port) is not HTTP or is incomplete; it may have begun: \
        GET /admin/prefetch shows it

        """)
  }

  @Test func `what cannot be begun is said without asking the server`() async throws {
    #expect(try await run { $0.admin.tokens = [] } == 1)
    #expect(errors.contains("set admin.tokens"))
    #expect(try await run(port: 0) == 1)
    #expect(errors.contains("server.port is 0"))
    #expect(try await run(folder.path + "/absent") == 1)
    #expect(errors.hasSuffix("/absent: cannot be read: No such file or directory (2)\n"))
    #expect(try await run(folder.path) == 1)
    #expect(errors.contains("Is a directory"))
    #expect(server.totalRequests == 0)
  }

  @Test func `what comes on standard input is a list`() async throws {
    server.route("/admin/prefetch", json(#"{"id": "7f", "total": 4}"#, status: 202))
    server.route("/admin/prefetch/7f", progress("finished", finished: 3))
    let input = open(folder.path + "/list", O_RDONLY)
    defer { close(input) }
    #expect(try await run("-", input: input) == 0)
    #expect(server.received(at: "/admin/prefetch").first?.headers["content-length"] == "15")
    #expect(try await run("-", input: -1) == 1)
    #expect(errors == "pictor: standard input: cannot be read: Bad file descriptor (9)\n")
  }

  @Test func `a list of 64 MiB is read, and none that is longer`() async throws {
    let path = folder.path + "/list"
    #expect(truncate(path, 64 << 20) == 0)
    #expect(try ListFile(path, input: -1).contents().count == 64 << 20)
    #expect(truncate(path, 64 << 20 + 1) == 0)
    #expect(try await run() == 1)
    #expect(errors == "pictor: \(path): has more than 64 MiB\n")
    #expect(server.totalRequests == 0)
  }
}
