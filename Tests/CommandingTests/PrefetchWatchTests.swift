// PrefetchWatchTests: failures between the start and the end of a prefetch, and Ctrl-C.

import Core
import Glibc
import TestSupport
import Testing

@testable import Commanding

extension PrefetchCommandTests {
  private func begins() {
    server.route("/admin/prefetch", to: .json(#"{"id": "7f", "total": 4}"#, status: 202))
  }

  /// Delays the end of a reply beyond the client's deadline.
  private func slowly(_ reply: OriginReply) -> OriginReply {
    OriginReply(
      reply.steps.map { step in
        if case .send(let bytes) = step { .trickle(bytes, milliseconds: 10) } else { step }
      })
  }

  private func pass(_ duration: Duration) { time.withLock { $0 += duration } }

  @Test(arguments: [
    OriginReply.status(503), .status(502, body: Array("<html>".utf8)), .status(429),
    .closeBeforeHead,
    .resetBeforeHead, .ok([]),
  ])
  func `a failed poll is retried`(reply: OriginReply) async throws {
    begins()
    server.route("/admin/prefetch/7f") { request in
      // Failures never last ten seconds in a row.
      pass(.seconds(4))
      if request.number > 12 { return progress("finished", finished: 3) }
      return request.number % 3 == 0 ? progress("running", finished: 1) : reply
    }
    #expect(try await run(columns: 60) == 0)
    #expect(server.requests(to: "/admin/prefetch/7f") == 13)
    #expect(!errors.contains("pictor: "))
  }

  @Test func `polls that fail for ten seconds end the watch with an error on its own line`()
    async throws
  {
    begins()
    server.route("/admin/prefetch/7f") { request in
      pass(.seconds(4))
      return request.number == 1 ? progress("running", finished: 1) : .status(503)
    }
    #expect(try await run(columns: 60) == 1)
    #expect(server.requests(to: "/admin/prefetch/7f") == 4)
    #expect(
      errors.hasSuffix(
        """
        \u{1B}[K
        pictor: cannot watch the prefetch: 127.0.0.1 port \(server.port) responded with 503; it may still run: GET \
        /admin/prefetch/7f shows its progress

        """))
    #expect(output.isEmpty)
  }

  @Test(arguments: [(401, "; it may still run: GET "), (404, "the server no longer knows it\n")])
  func `a poll refused with 401 or 404 ends the watch at once`(
    status: Int, words: String
  ) async throws {
    begins()
    server.route("/admin/prefetch/7f", to: .status(status))
    #expect(try await run() == 1)
    #expect(server.requests(to: "/admin/prefetch/7f") == 1)
    #expect(errors.contains(words))
  }

  @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
  func `an interruption during a poll cancels the prefetch`(signal: CInt) async throws {
    begins()
    server.route("/admin/prefetch/7f") { request in
      if request.method == "DELETE" { return .json(#"{"cancelled": true}"#) }
      if request.number > 2 { return progress("cancelled", finished: 1) }
      guard request.number == 2 else { return progress("running", finished: 1) }
      interruption.note(signal)
      return slowly(progress("finished", finished: 3))
    }
    #expect(try await run(columns: 60) == 128 + signal)
    let methods = server.received(at: "/admin/prefetch/7f").map(\.method)
    #expect(methods == ["GET", "GET", "DELETE", "GET"])
    #expect(output.hasPrefix("cancelled after 2.0 s: "))
    #expect(errors.hasSuffix("\u{1B}[K\n"))
  }

  @Test func `an interruption before the response waits for the id, then cancels`() async throws {
    server.route("/admin/prefetch") { _ in
      interruption.note(SIGINT)
      return .json(#"{"id": "7f", "total": 4}"#, status: 202)
    }
    server.route("/admin/prefetch/7f") { request in
      request.method == "DELETE" ? .status(200) : progress("cancelled", finished: 0)
    }
    #expect(try await run() == 130)
    #expect(server.received(at: "/admin/prefetch/7f").map(\.method).contains("DELETE"))
    #expect(output.hasPrefix("cancelled after"))
  }

  @Test func `an interruption before the list is sent starts nothing`() async throws {
    let deaf = try Origin(answers: false)
    #expect(truncate(folder.path + "/list", 32 << 20) == 0)
    interruption.note(SIGINT)
    #expect(try await run(port: deaf.port) == 130)
    #expect(errors == "pictor: interrupted before the list was sent: nothing was started\n")
  }

  @Test(arguments: [
    (OriginReply.status(503), "could not be cancelled and continues: 127.0.0.1 port "),
    (.closeBeforeHead, "could not be cancelled and may continue: the response of 127.0.0.1 port "),
  ])
  func `a failed cancellation is reported`(reply: OriginReply, words: String) async throws {
    begins()
    server.route("/admin/prefetch/7f") { request in
      if request.method == "DELETE" { return reply }
      interruption.note(SIGINT)
      return progress("running", finished: 1)
    }
    #expect(try await run() == 130)
    #expect(errors.hasPrefix("pictor: the list " + words))
    #expect(output.isEmpty, "that it runs is no end of it")
  }

  @Test func `when the prefetch ends before its cancellation, its summary is printed`() async throws
  {
    begins()
    server.route("/admin/prefetch/7f") { request in
      if request.method == "DELETE" { return .status(404) }
      interruption.note(SIGINT)
      return request.number == 1
        ? progress("running", finished: 1) : progress("finished", finished: 3)
    }
    #expect(try await run() == 130)
    #expect(errors.isEmpty)
    #expect(output.hasPrefix("finished after 2.0 s: "))
  }

  @Test func `when the server forgets a cancelled prefetch, the command says so`() async throws {
    begins()
    server.route("/admin/prefetch/7f") { request in
      interruption.note(SIGINT)
      return request.number == 1 ? progress("running", finished: 1) : .status(404)
    }
    #expect(try await run() == 130)
    #expect(errors == "pictor: the list had already ended; the server no longer knows it\n")
  }

  @Test func `without a terminal, a progress line is printed every five seconds`() async throws {
    begins()
    server.route("/admin/prefetch/7f") { request in
      pass(.seconds(2))
      return request.number < 8
        ? progress("running", finished: min(request.number, 3)) : progress("finished", finished: 3)
    }
    #expect(try await run() == 0)
    let bars = errors.split(separator: "\n")
    #expect(bars.count == 2)
    #expect(bars.allSatisfy { $0.hasSuffix("] 4/4, 1 skipped, 1.0/s") })
    #expect(!errors.contains("\u{1B}") && !errors.contains("\r"))
  }
}
