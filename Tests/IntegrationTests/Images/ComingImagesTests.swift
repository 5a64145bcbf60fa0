// Tests of images that are sent while they come in, with the real program and an origin that takes its time.

import Glibc
import Model
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ComingImagesTests {
  private let folder: TemporaryFolder
  private let origin: Origin
  private let image: [UInt8]
  private let wish = "&format=jpeg&progressive=1"

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    image = try TestImages.jpeg(width: 1_600, height: 1_200, bare: true)
  }

  /// What a client has got of its answer's body so far, once that is `count` bytes.
  private func read(_ client: HTTPClient, head: inout String, count: Int) throws -> [UInt8] {
    while !head.hasSuffix("\r\n\r\n") {
      head += String(decoding: try client.read(1), as: UTF8.self)
    }
    return try client.read(count)
  }

  @Test func `several clients read one transfer from its first byte while it comes in`() throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    origin.route("/a.jpg", .ok(image, holdingAfter: 30_000, at: gate))
    let clients = try (0..<3).map { _ in try pictor.connect() }
    for client in clients {
      try client.send(HTTPClient.text("GET", origin.target("/a.jpg", wish)))
      var head = ""
      // The origin waits in the middle of the image, and its beginning is here already.
      #expect(try read(client, head: &head, count: 30_000) == Array(image[..<30_000]))
      #expect(head.contains("Content-Type: image/jpeg"))
      #expect(head.contains("Content-Length: \(image.count)"))
      #expect(head.contains("Cache-Status: pictor; fwd=uri-miss; fwd-status=200"))
      #expect(head.contains("ETag: \""))
    }
    gate.open()
    for client in clients {
      #expect(try client.read(image.count - 30_000) == Array(image[30_000...]))
    }
    #expect(origin.requests(to: "/a.jpg") == 1)
    // And it is kept: the same bytes, then other sizes, without another download.
    try pictor.waitFor("it is kept") { $0.memory.entries == 1 }
    let again = try clients[0].get(origin.target("/a.jpg", wish))
    #expect(again.body == image && again["cache-status"] == "pictor; hit; detail=memory")
    let small = try clients[0].get(origin.target("/a.jpg", "&w=100"))
    #expect(small["cache-status"] == "pictor; hit; detail=source")
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `the entity tag is the same while it comes in and afterwards, after a restart too`()
    throws
  {
    origin.serve("/a.jpg", image)
    var tags: [String?] = []
    do {
      let pictor = try PictorProcess(in: folder)
      for _ in 0..<2 { tags.append(try pictor.get(origin.target("/a.jpg", wish))["etag"]) }
      #expect(try pictor.end() == 0)
    }
    let pictor = try PictorProcess(in: folder)
    let answer = try pictor.get(origin.target("/a.jpg", wish))
    tags.append(answer["etag"])
    #expect(answer["cache-status"] == "pictor; hit; detail=source")
    #expect(Set(tags).count == 1 && tags[0] != nil)
    #expect(answer.body == image)
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `a length the origin does not tell is no hindrance`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.route("/a.jpg", .chunked(image, size: 10_000))
    let answer = try pictor.get(origin.target("/a.jpg", wish))
    #expect(answer.body == image)
    #expect(answer["content-length"] == nil || answer["content-length"] == "\(image.count)")
  }

  @Test func `a transfer that ends too early cuts the answer, and is not kept`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.route("/a.jpg") { [image] request in
      request.number == 1
        ? .truncated(Array(image[..<50_000]), declaring: image.count) : .ok(image)
    }
    let client = try pictor.connect()
    try client.send(HTTPClient.text("GET", origin.target("/a.jpg", wish)))
    #expect(throws: HTTPClientError.self) { try client.readAnswer() }
    let again = try pictor.get(origin.target("/a.jpg", wish))
    #expect(again.status == 200 && again.body == image)
    #expect(origin.requests(to: "/a.jpg") == 2)
  }

  @Test func `the last client to go ends the transfer, unless it is detached`() throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    for path in ["/a.jpg", "/b.jpg"] {
      origin.route(path, .ok(image, holdingAfter: 30_000, at: gate))
    }
    for (path, more) in [("/a.jpg", ""), ("/b.jpg", "&detach=1")] {
      let client = try pictor.connect()
      try client.send(HTTPClient.text("GET", origin.target(path, wish + more)))
      var head = ""
      _ = try read(client, head: &head, count: 30_000)
      client.close()
    }
    try pictor.waitFor("one is cancelled") { $0.downloads.cancelled == 1 }
    gate.open()
    try pictor.waitFor("the other is kept") { $0.downloads.succeeded == 1 }
    let kept = try pictor.get(origin.target("/b.jpg", wish))
    #expect(kept.body == image)
    #expect(origin.requests(to: "/b.jpg") == 1)
  }

  @Test func `what needs work is worked on, and drawn progressively`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/turned.jpg", try TestImages.jpeg(width: 90, height: 60, orientation: 6))
    origin.serve("/plain.jpg", image)
    let turned = try pictor.get(origin.target("/turned.jpg", wish))
    #expect(try Pixels(decoding: turned.body).size == PixelSize(width: 90, height: 60))
    #expect(turned.body != image)
    #expect(turned["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
    // Another format, a size, a quality, a limit that it passes.
    for more in [
      "&format=webp&progressive=1", wish + "&w=80", wish + "&quality=50",
      wish + "&limitbytes=40000",
    ] {
      let answer = try pictor.get(origin.target("/plain.jpg", more))
      #expect(answer.status == 200 && answer.body != image, "\(more)")
    }
    // Without the wish it is made anew, too.
    #expect(try pictor.get(origin.target("/plain.jpg", "&format=jpeg")).body != image)
  }

  @Test func `an image of absurd size is refused, and the server goes on`() throws {
    let pictor = try PictorProcess(in: folder)
    let side: [UInt8] = [0x7f, 0xff, 0xff, 0xff]
    let header = Array("IHDR".utf8) + side + side + [8, 2, 0, 0, 0, 0, 0, 0, 0]
    let bytes =
      [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13] + header + [0, 0, 0, 9]
      + Array("IDAT".utf8)
    origin.serve("/absurd.png", bytes)
    // As many as clients may ask for; more is refused before anything is loaded.
    for (limit, status) in [("100000000", 422), ("9223372036854775807", 400)] {
      let wish = "&format=png&progressive=1&limitbytes=\(limit)"
      #expect(try pictor.get(origin.target("/absurd.png", wish)).status == status, "\(limit)")
    }
    #expect(try pictor.get("/stats").status == 200)
  }

  @Test func `a head is asked for and answered whole`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", image)
    let head = try pictor.connect().head(origin.target("/a.jpg", wish))
    #expect(head.status == 200 && head["content-length"] == "\(image.count)")
  }

  @Test func `a failure before the image has begun is the failure it would be`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/text", Array("no image at all".utf8))
    let first = try pictor.get(origin.target("/none", wish))
    #expect(first.status == 404 && first["cache-status"] == nil)
    #expect(origin.requests(to: "/none") == 1)
    #expect(
      try pictor.get(origin.target("/none", wish))["cache-status"]
        == "pictor; hit; detail=failed-url")
    #expect(try pictor.get(origin.target("/text", wish)).status == 415)
    // Nor is what needs work, and may not be kept, loaded twice.
    origin.serve(
      "/turned.jpg", try TestImages.jpeg(width: 90, height: 60, orientation: 6),
      headers: ["Cache-Control: no-store"])
    #expect(try pictor.get(origin.target("/turned.jpg", wish)).status == 200)
    #expect(origin.requests(to: "/turned.jpg") == 1)
  }

  @Test func `a server that stops cuts what still comes in at the end of its grace`() throws {
    let pictor = try PictorProcess(in: folder, ["--server.grace_time", "100ms"])
    origin.route("/a.jpg", .ok(image, holdingAfter: 30_000, at: Gate()))
    let client = try pictor.connect()
    try client.send(HTTPClient.text("GET", origin.target("/a.jpg", wish)))
    var head = ""
    _ = try read(client, head: &head, count: 30_000)
    #expect(try pictor.end() == 0)
    try client.waitForClose()
  }
}
