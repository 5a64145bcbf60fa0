// PurgeCommandTests: the purge command against a test server.

@testable import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads, .serialized) struct PurgeCommandTests {
  private let kit: OperatorKit

  init() throws { kit = try OperatorKit() }

  /// Returns the exit status of `pictor purge`.
  private func run(
    _ subjects: [PurgeSubject], change: (inout Configuration) -> Void = { _ in }
  ) async -> CInt {
    await kit.run(change: change) { $0.purge(subjects) }
  }

  private var errors: String { kit.printed.errors }
  private var output: String { kit.printed.output }

  @Test func `each subject sends one request and prints one line`() async throws {
    kit.server.route("/admin/cache") { request in
      .json(
        """
        {"purged": {"memory": 2, "disk": \(request.number == 1 ? "3" : "null"), \
        "failed": \(request.number)}}
        """)
    }
    kit.server.route(
      "/admin/cache/clear", to: .json(#"{"purged": {"memory": 0, "disk": 0, "failed": 0}}"#))
    let status = await run([
      .url("http://h/a b.jpg?x=1&y=2"), .prefix("http://h/a"), .host("*.h"), .tag("shop"),
      .everything,
    ])
    #expect(status == 0)
    #expect(
      kit.server.received(at: "/admin/cache").map { $0.method + " " + $0.target } == [
        "DELETE /admin/cache?url=http%3A%2F%2Fh%2Fa%20b.jpg%3Fx%3D1%26y%3D2",
        "DELETE /admin/cache?prefix=http%3A%2F%2Fh%2Fa", "DELETE /admin/cache?host=%2A.h",
        "DELETE /admin/cache?tag=shop",
      ])
    let clear = try #require(kit.server.received(at: "/admin/cache/clear").first)
    #expect(clear.method == "POST" && clear.target == "/admin/cache/clear?tier=all")
    #expect(clear.headers["authorization"] == "Bearer 0123456789abcdef")
    #expect(
      output == """
        http://h/a b.jpg?x=1&y=2: purged: 2 in memory, 3 on disk, 1 remembered failure
        prefix http://h/a: purged: 2 in memory, the search on disk continues, 2 remembered failures
        host *.h: purged: 2 in memory, the search on disk continues, 3 remembered failures
        tag shop: purged: 2 in memory, the search on disk continues, 4 remembered failures
        everything: purged: 0 in memory, 0 on disk, 0 remembered failures

        """)
    #expect(errors.isEmpty)
  }

  @Test func `a refused subject is reported with exit status 1, and the others are still purged`()
    async
  {
    kit.server.route("/admin/cache") { request in
      request.number == 1
        ? .json(#"{"error": {"code": "x", "message": "no \u001b tag"}}"#, status: 400)
        : .json(#"{"purged": {"memory": 1, "disk": 0, "failed": 0}}"#)
    }
    #expect(await run([.tag("a\u{1b}b"), .url("http://h/a")]) == 1)
    #expect(
      errors
        == "pictor: tag a\u{FFFD}b: 127.0.0.1 port \(kit.server.port) responded with 400: no \u{FFFD} tag\n"
    )
    #expect(output == "http://h/a: purged: 1 in memory, 0 on disk, 0 remembered failures\n")
  }

  @Test func `a purge that cannot be sent returns exit status 1`() async {
    #expect(await run([.everything]) { $0.admin.tokens = [] } == 1)
    #expect(errors.contains("set admin.tokens"))
    #expect(await run([.everything]) { $0.server.port = 0 } == 1)
    #expect(errors.contains("server.port is 0"))
    #expect(kit.server.totalRequests == 0)
    kit.server.route("/admin/cache", to: .status(200, body: Array("<html>".utf8)))
    #expect(await run([.url("http://h/a")]) == 1)
    #expect(errors.contains("responded with 200\n"))
    kit.server.stop()
    #expect(await run([.url("http://h/a"), .url("http://h/b")]) == 1)
    #expect(errors.contains("http://h/a: cannot connect") && !errors.contains("http://h/b"))
  }
}
