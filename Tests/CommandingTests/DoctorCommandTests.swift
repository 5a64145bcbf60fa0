// DoctorCommandTests: the doctor command against a test server.

@testable import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads, .serialized) struct DoctorCommandTests {
  private let kit: OperatorKit

  init() throws { kit = try OperatorKit() }

  private static let answer = """
    {"ok": false, "url": "u", "rule": null, "image": null, "steps": [
      {"step": "name", "ok": true, "ms": 1.2, "found": "192.0.2.1", "rule": "k"},
      {"step": "connect", "ok": false, "ms": 1e300, "found": "no\\u001b[2J\\n\\u202e", "rule": "r"}]}
    """

  private func run(
    _ order: DoctorOrder, status: Int = 200, body: String = Self.answer,
    tokens: [OperatorToken] = ["0123456789abcdef"]
  ) async -> CInt {
    kit.server.route("/admin/doctor", to: .json(body, status: status))
    return await kit.run {
      $0.admin.tokens = tokens
    } command: {
      $0.doctor(order)
    }
  }

  @Test func `a step that failed is status 1, and no text of the answer is a command`() async {
    #expect(await run(DoctorOrder(url: "http://h/a b&c")) == 1)
    let request = kit.server.received(at: "/admin/doctor").last
    #expect(request?.method == "POST")
    #expect(request?.target == "/admin/doctor?url=http%3A%2F%2Fh%2Fa%20b%26c")
    #expect(request?.headers["content-length"] == "0")
    let lines = kit.printed.output.split(separator: "\n")
    #expect(lines.count == 3 && lines[0].hasPrefix("        step "))
    #expect(lines[1].hasPrefix("ok      name     1.2 ") && lines[1].hasSuffix(" k"))
    #expect(lines[2].hasPrefix("FAILED  connect  1e+300 ") && lines[2].hasSuffix(" r"))
    #expect(!kit.printed.output.contains { "\u{1b}\u{202e}".contains($0) })
  }

  @Test func `JSON is printed as it is, with the status of the diagnosis`() async {
    let sound =
      #"{"ok": true, "url": "u", "steps": [{"step": "file", "ok": true, "found": "f", "rule": "k"}]}"#
    #expect(await run(DoctorOrder(url: "local:///a", isJSON: true), body: sound) == 0)
    #expect(kit.printed.output == sound + "\n")
  }

  @Test func `an error, another answer and a token without the scope are a line and status 1`()
    async
  {
    let body = #"{"error": {"code": "x", "message": "no url"}}"#
    #expect(await run(DoctorOrder(url: "u"), status: 400, body: body) == 1)
    #expect(kit.printed.errors.contains("no url"))
    #expect(await run(DoctorOrder(url: "u"), body: "{}") == 1)
    #expect(kit.printed.errors.contains("not a diagnosis"))
    var reader: OperatorToken = "0123456789abcdef"
    reader.scopes = [.read]
    #expect(await run(DoctorOrder(url: "u"), tokens: [reader]) == 1)
    #expect(kit.printed.errors.contains("scope write"))
    #expect(kit.server.requests(to: "/admin/doctor") == 2)
  }
}
