// The content of errors: the deciding key for operators, a hint for clients, and nothing else.

import TestSupport
import Testing

@Suite(.onOwnThreads) final class ExplainedErrorsTests: OriginSuite {
  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
  }

  @Test(arguments: [false, true])
  func `the deciding key is always logged, and returned if configured`(
    explains: Bool
  ) throws {
    // Given
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.explain_errors", "\(explains)", "--download.allow_networks", "127.0.0.0/8",
        "--download.deny_hosts", "denied.example", "--download.maximum_bytes", "100B",
        "--server.allow", "",
      ])
    for (target, status, key) in [
      ("/image?url=http://10.0.0.1/a.jpg", 403, "download.allow_networks"),
      ("/image?url=http://denied.example/a.jpg", 403, "download.deny_hosts"),
      ("/image?url=local:///a.jpg", 403, "sources.local_root"),
      (origin.target("/a.jpg"), 413, "download.maximum_bytes"),
      (origin.target("/a.jpg", adding: "&w=1"), 413, "download.maximum_bytes"),
      ("/image?url=http://10.0.0.1/b.jpg&refresh=1", 403, "server.allow"),
    ] {
      // When
      let answer = try pictor.get(target)
      // Then
      #expect(answer.status == status)
      #expect(answer.text.contains(key) == explains, "\(answer.text)")
      // The purpose of a reserved address is only logged.
      #expect(!answer.text.contains("private"))
      let id = try #require(answer["x-request-id"])
      let line = pictor.log.split(separator: "\n").first { $0.contains(id) }
      #expect(line?.contains(key) == true, "\(String(describing: line))")
    }
  }

  @Test func `when an image is not found, a plus in its URL is explained`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a+b.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let url = origin.url("/not+there.jpg")
    let hint = "its path has a '+', which is not decoded as a space: write %20 for a space"
    // Then: the first failure and the remembered one
    for path in ["/image", "/image", "/info"] {
      let answer = try pictor.get("\(path)?url=\(url)")
      #expect(answer.status == 404 && answer.text.contains("source_not_found"))
      #expect(answer.text.contains("(404); \(hint)"), "\(answer.text)")
    }
    // An encoded plus, one in the query of the URL, and one in another parameter
    for target in [
      origin.target("/not+there.jpg"), "/image?url=\(origin.url("/none.jpg?a+b"))",
      "/image?url=\(origin.url("/none.jpg"))&background=a+b",
    ] {
      #expect(try !pictor.get(target).text.contains("%20"))
    }
    #expect(try pictor.get("/image?url=\(origin.url("/a+b.jpg"))").status == 200)
  }
}
