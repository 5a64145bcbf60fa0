// PrefetchCommandTests: the prefetch command against a test server.

@testable import Core
import Glibc
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads, .serialized) struct PrefetchCommandTests {
  let folder: TemporaryFolder
  let kit: OperatorKit
  /// The current time of the command.
  let time = Lock(ContinuousClock.now)
  let interruption: Interruption

  init() throws {
    folder = try TemporaryFolder()
    kit = try OperatorKit()
    interruption = try Interruption()
    try folder.write("list", bytes: Array("http://a/1.jpg\n".utf8))
  }

  func progress(_ state: String, finished: Int, failed: Int = 0) -> OriginReply {
    .json(
      """
      {"id": "7f", "state": "\(state)", "total": 4, "finished": \(finished), "skipped": 1,
       "failed": \(failed), "reasons": {}, "failures": [], "rate": 1, "seconds": 2}
      """)
  }

  /// Returns the exit status of `pictor prefetch`.
  func run(
    _ file: String? = nil, presets: [String] = [], port: Int? = nil, columns: Int? = nil,
    input: CInt = -1,
    change: (inout Configuration) -> Void = { _ in }
  ) async throws -> CInt {
    let list = ListFile(file ?? folder.path + "/list", input: input)
    let pace = PrefetchWatch.Pace(now: { [time] in time.withLock { $0 } }, milliseconds: 1)
    return await kit.run(columns: columns) {
      $0.server.port = port ?? server.port
      $0.admin.tokens = ["0123456789abcdef", "fedcba9876543210"]
      change(&$0)
    } command: {
      $0.prefetch(list, presets: presets, pace: pace, interruption: interruption)
    }
  }

  var server: Origin { kit.server }
  var errors: String { kit.printed.errors }
  var output: String { kit.printed.output }

  @Test func `the command sends the list, polls until the prefetch ends, and prints a summary`()
    async throws
  {
    server.route("/admin/prefetch", to: .json(#"{"id": "7f", "total": 4}"#, status: 202))
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
  func `a failed or cancelled prefetch returns exit status 1`(
    state: String, finished: Int, failed: Int
  ) async throws {
    server.route("/admin/prefetch", to: .json(#"{"id": "7f", "total": 4}"#, status: 202))
    server.route("/admin/prefetch/7f", to: progress(state, finished: finished, failed: failed))
    #expect(try await run() == 1)
    #expect(output.hasPrefix("\(state) after"))
    #expect(errors.isEmpty, "no terminal, and nothing to say in so short a time")
  }

  @Test(arguments: [
    (401, "does not accept the token token1 of admin.tokens"),
    (
      404,
      "has no admin endpoints: it was started without admin.tokens, or with a "
        + "server.operator_address, which this command needs too"
    ),
    (403, "responded with 403: too \u{FFFD} long"),
    (413, "responded with 413: too \u{FFFD} long"), (503, "responded with 503: too \u{FFFD} long"),
  ])
  func `a refusal is reported in one line`(status: Int, words: String) async throws {
    server.route(
      "/admin/prefetch",
      to: .json(#"{"error": {"code": "x", "message": "too \u001b long"}}"#, status: status))
    #expect(try await run() == 1)
    #expect(errors == "pictor: 127.0.0.1 port \(server.port) \(words)\n")
    #expect(output.isEmpty)
  }

  @Test func `a response that is not JSON is reported with its status`() async throws {
    server.route("/admin/prefetch", to: .status(500, body: Array("<html>".utf8)))
    #expect(try await run() == 1)
    #expect(errors == "pictor: 127.0.0.1 port \(server.port) responded with 500\n")
  }

  @Test func `a prefetch that the server no longer knows is reported in one line`() async throws {
    server.route("/admin/prefetch", to: .json(#"{"id": "7f", "total": 4}"#, status: 202))
    #expect(try await run() == 1)
    #expect(errors == "pictor: cannot watch the prefetch: the server no longer knows it\n")
  }

  @Test func `a refused connection is reported in one line`() async throws {
    server.stop()
    #expect(try await run() == 1)
    #expect(
      errors.hasPrefix(
        "pictor: cannot connect to 127.0.0.1 port \(server.port): Connection refused"))
  }

  @Test func `a response cut off in its head is reported in one line`() async throws {
    server.route("/admin/prefetch", to: OriginReply([.send(Array("HTTP/1.1 20".utf8)), .close]))
    #expect(try await run() == 1)
    #expect(
      errors == """
        pictor: the response of 127.0.0.1 port \(server.port) is not HTTP or is incomplete; it may have started: \
        GET /admin/prefetch shows it

        """)
  }

  @Test func `invalid settings and unreadable lists are reported without a request`() async throws {
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

  @Test func `the file name - reads the list from standard input`() async throws {
    server.route("/admin/prefetch", to: .json(#"{"id": "7f", "total": 4}"#, status: 202))
    server.route("/admin/prefetch/7f", to: progress("finished", finished: 3))
    let input = open(folder.path + "/list", O_RDONLY)
    defer { close(input) }
    #expect(try await run("-", input: input) == 0)
    #expect(server.received(at: "/admin/prefetch").first?.headers["content-length"] == "15")
    #expect(try await run("-", input: -1) == 1)
    #expect(errors == "pictor: standard input: cannot be read: Bad file descriptor (9)\n")
  }

  @Test func `a list of 64 MiB is read, and a longer one is refused`() async throws {
    let path = folder.path + "/list"
    #expect(truncate(path, 64 << 20) == 0)
    #expect(try ListFile(path, input: -1).contents().count == 64 << 20)
    #expect(truncate(path, 64 << 20 + 1) == 0)
    #expect(try await run() == 1)
    #expect(errors == "pictor: \(path): has more than 64 MiB\n")
    #expect(server.totalRequests == 0)
  }
}
