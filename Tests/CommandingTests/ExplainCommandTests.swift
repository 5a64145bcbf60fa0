// ExplainCommandTests: the explain command against a test server.

@testable import Core
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads, .serialized) struct ExplainCommandTests {
  private let kit: OperatorKit

  init() throws { kit = try OperatorKit() }

  private static let answer = """
    {"url": "http://h/a\\u001b.jpg", "rule": {"number": 2, "hosts": "h", "tags": []},
     "keys": {"source": "s", "variant": "v"}, "parameters": {}, "transform": "w=300",
     "format": {"name": null, "negotiated": ["avif", "webp"], "redirects": false},
     "client": {"allowed": false, "code": "invalid_signature", "message": "no"},
     "limits": {}, "memory": null,
     "disk": {"bytes": 10, "age": 5, "ttl": -2, "use": "no", "received": 1,
       "stale_while_revalidate": 0, "stale_if_error": 0, "etag": "\\"x\\""},
     "source": {"bytes": 20, "age": 5, "ttl": 100, "use": "fresh", "received": 1,
       "stale_while_revalidate": 0, "stale_if_error": 0,
       "origin": {"status": 200, "cache_control": "max-age=105"}},
     "failures": [], "flights": {"variant": 0, "source": 0, "revalidating": false},
     "origin": {"host": "h:80", "circuit": "open", "circuit_seconds": 4.2, "recent_failures": 5,
       "paused": false, "running": 1, "waiting": 2, "limit_per_host": 6, "maximum_bytes": 9},
     "would": [{"step": "memory", "outcome": "next", "why": "absent"},
       {"step": "store", "outcome": "answers", "why": "stores the variant"}],
     "answer": {"cache_status": "pictor; hit; detail=source", "collapsed": false}}
    """

  private func run(
    _ order: ExplainOrder, status: Int = 200, body: String = Self.answer
  ) async -> CInt {
    kit.server.route("/admin/explain", to: .json(body, status: status))
    return await kit.run { $0.explain(order) }
  }

  @Test(arguments: [
    ("http://h/a.jpg", "url=http%3A%2F%2Fh%2Fa.jpg"),
    ("/image?url=http://h/a.jpg&w=3", "url=http://h/a.jpg&w=3"),
    ("https://images.example/image?w=3&url=http://h/a b", "w=3&url=http://h/a%20b"),
    ("https://other.example/image?id=3", "url=https%3A%2F%2Fother.example%2Fimage%3Fid%3D3"),
    ("url=http://h/ä#x", "url=http://h/%C3%A4%23x"),
  ]) func `a URL or a query becomes the server's query`(subject: String, query: String) async {
    #expect(await run(ExplainOrder(subject: subject)) == 0)
    #expect(kit.server.received(at: "/admin/explain").last?.target == "/admin/explain?" + query)
  }

  @Test func `the explanation is printed as text, without control characters`() async {
    #expect(await run(ExplainOrder(subject: "http://h/a.jpg")) == 0)
    let output = kit.printed.output
    for part in [
      "2, for h", "negotiated: avif, webp", "invalid_signature", "memory            absent",
      "stale for 2 s", "not usable without the origin", "Cache-Control: max-age=105",
      "circuit open", "for 5 s more", "next: absent",
      "answer            Cache-Status: pictor; hit; detail=source",
    ] {
      #expect(output.contains(part), "\(part) in \(output)")
    }
    #expect(!output.contains("\u{1b}"))
  }

  @Test func `accept is sent, and the JSON is printed as it is`() async {
    var order = ExplainOrder(subject: "http://h/a.jpg")
    order.accept = "image/avif"
    order.isJSON = true
    #expect(await run(order) == 0)
    #expect(kit.printed.output == Self.answer + "\n")
    #expect(
      kit.server.received(at: "/admin/explain").last?.target.hasSuffix("&accept=image%2Favif")
        == true)
  }

  @Test func `an error is a line and status 1`() async {
    let body = #"{"error": {"code": "x", "message": "no url"}}"#
    #expect(await run(ExplainOrder(subject: "/image?w=1"), status: 400, body: body) == 1)
    #expect(kit.printed.errors.contains("no url"))
  }

  /// The answer with hostile texts in place of its own, and extreme numbers.
  private static let hostile =
    answer
    .replacing(#""step": "memory""#, with: #""step": "mem\u001b]0;x\u0007""#)
    .replacing("pictor; hit; detail=source", with: #"pictor\u001b[2J\u009b\n\u202e"#)
    .replacing(#""ttl": -2"#, with: #""ttl": -9223372036854775808"#)
    .replacing("4.2", with: "1e300")

  @Test
  func `no text or number of the answer reaches the terminal as a command, or ends the program`()
    async
  {
    #expect(await run(ExplainOrder(subject: "http://h/a.jpg"), body: Self.hostile) == 0)
    let output = kit.printed.output
    #expect(output.contains("stale for 9223372036854775808 s"))
    for sign in ["\u{1b}", "\u{7}", "\u{9b}", "\u{202e}"] { #expect(!output.contains(sign)) }
    #expect(output.split(separator: "\n").last?.hasPrefix("answer ") == true, "\(output)")
  }

  @Test func `control characters of the JSON are printed as escapes`() async {
    var order = ExplainOrder(subject: "http://h/a.jpg")
    order.isJSON = true
    #expect(await run(order, body: "{\"a\":\n\"\u{1b}\u{9b}\u{202e}\u{e0001}ä\"}") == 0)
    #expect(
      kit.printed.output == "{\"a\":\n\"\\u001b\\u009b\\u202e\\udb40\\udc01ä\"}\n")
  }
}
