// Images that are streamed while they are received, with the real program and a slow origin.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class ComingImagesTests: OriginSuite {
  private let image: [UInt8]
  private let wish = "&format=jpeg&progressive=1"
  /// What clients have of the first 30,000 bytes: the last byte waits for the image's end.
  private static let sent = 29_999

  override init() throws {
    image = try TestImages.jpeg(width: 1_600, height: 1_200, bare: true)
    try super.init()
  }

  @Test func `several clients stream one transfer from its first byte`() throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    origin.route("/a.jpg", to: .ok(image, holdingAfter: 30_000, at: gate))
    let clients = try (0..<3).map { _ in try pictor.connect() }
    for client in clients {
      try client.send(HTTPClient.text("GET", target: origin.target("/a.jpg", adding: wish)))
      let head = try client.read(until: "\r\n\r\n")
      // The origin waits in the middle of the image, and its first half has arrived.
      #expect(try client.read(Self.sent) == Array(image[..<Self.sent]))
      #expect(head.contains("Content-Type: image/jpeg"))
      #expect(head.contains("Content-Length: \(image.count)"))
      #expect(head.contains("Cache-Status: pictor; fwd=uri-miss; fwd-status=200"))
      #expect(head.contains("ETag: \""))
    }
    gate.open()
    for client in clients {
      #expect(try client.read(image.count - Self.sent) == Array(image[Self.sent...]))
    }
    #expect(origin.requests(to: "/a.jpg") == 1)
    // And it is stored: the same bytes, then other sizes, without another download.
    try pictor.waitFor("it is kept") { $0.memory.entries == 1 }
    let again = try clients[0].get(origin.target("/a.jpg", adding: wish))
    #expect(again.body == image && again["cache-status"] == "pictor; hit; detail=memory")
    let small = try clients[0].get(origin.target("/a.jpg", adding: "&w=100"))
    #expect(small["cache-status"] == "pictor; hit; detail=source")
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `a stream has zeros where the source has data behind its image`() throws {
    let pictor = try PictorProcess(in: folder)
    let secret = Array("where the photograph was taken".utf8)
    origin.serve("/a.jpg", bytes: image + secret)
    let answer = try pictor.get(origin.target("/a.jpg", adding: wish))
    #expect(answer.body == image + secret.map { _ in 0 })
    #expect(answer["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200")
  }

  @Test func `the entity tag is the same while streaming, afterwards and after a restart`()
    throws
  {
    origin.serve("/a.jpg", bytes: image)
    var tags: [String?] = []
    do {
      let pictor = try PictorProcess(in: folder)
      for _ in 0..<2 { tags.append(try pictor.get(origin.target("/a.jpg", adding: wish))["etag"]) }
      // A client has the last byte before the source is stored.
      try pictor.waitFor("it is stored") { $0.disk.entries == 1 }
      #expect(try pictor.end() == 0)
    }
    let pictor = try PictorProcess(in: folder)
    let answer = try pictor.get(origin.target("/a.jpg", adding: wish))
    tags.append(answer["etag"])
    #expect(answer["cache-status"] == "pictor; hit; detail=source")
    #expect(Set(tags).count == 1 && tags[0] != nil)
    #expect(answer.body == image)
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `an image without a stated length is streamed`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.route("/a.jpg", to: .chunked(image, size: 10_000))
    let answer = try pictor.get(origin.target("/a.jpg", adding: wish))
    #expect(answer.body == image)
    #expect(answer["content-length"] == nil || answer["content-length"] == "\(image.count)")
  }

  @Test func `a truncated transfer aborts the response and is not stored`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.route("/a.jpg") { [image] request in
      request.number == 1
        ? .truncated(Array(image[..<50_000]), declaring: image.count) : .ok(image)
    }
    let client = try pictor.ask(origin.target("/a.jpg", adding: wish))
    #expect(throws: HTTPClientError.self) { try client.readAnswer() }
    let again = try pictor.get(origin.target("/a.jpg", adding: wish))
    #expect(again.status == 200 && again.body == image)
    #expect(origin.requests(to: "/a.jpg") == 2)
  }

  @Test func `the last client to disconnect ends a streamed transfer, unless it is detached`()
    throws
  {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    for path in ["/a.jpg", "/b.jpg"] {
      origin.route(path, to: .ok(image, holdingAfter: 30_000, at: gate))
    }
    for (path, more) in [("/a.jpg", ""), ("/b.jpg", "&detach=1")] {
      let client = try pictor.ask(origin.target(path, adding: wish + more))
      _ = try client.read(until: "\r\n\r\n")
      _ = try client.read(Self.sent)
      client.close()
    }
    try pictor.waitFor("one is cancelled") { $0.downloads.cancelled == 1 }
    gate.open()
    try pictor.waitFor("the other is kept") { $0.downloads.succeeded == 1 }
    let kept = try pictor.get(origin.target("/b.jpg", adding: wish))
    #expect(kept.body == image)
    #expect(origin.requests(to: "/b.jpg") == 1)
  }

  @Test func `an image that needs work is rendered as a progressive image`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/turned.jpg", bytes: try TestImages.jpeg(width: 90, height: 60, orientation: 6))
    origin.serve("/plain.jpg", bytes: image)
    let turned = try pictor.get(origin.target("/turned.jpg", adding: wish))
    #expect(try Pixels(decoding: turned.body).size == PixelSize(width: 90, height: 60))
    #expect(turned.body != image)
    #expect(turned["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
    // Another format, a size, a quality, a limit below the image's size.
    for more in [
      "&format=webp&progressive=1", wish + "&w=80", wish + "&quality=50",
      wish + "&limitbytes=40000",
    ] {
      let answer = try pictor.get(origin.target("/plain.jpg", adding: more))
      #expect(answer.status == 200 && answer.body != image, "\(more)")
    }
    // Without these parameters it is also rendered again.
    #expect(try pictor.get(origin.target("/plain.jpg", adding: "&format=jpeg")).body != image)
  }

  @Test func `a HEAD request for a streamed image returns the complete head`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: image)
    let head = try pictor.connect().head(origin.target("/a.jpg", adding: wish))
    #expect(head.status == 200 && head["content-length"] == "\(image.count)")
  }

  @Test func `a failure before the first byte is reported like any other`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/text", bytes: Array("no image at all".utf8))
    let first = try pictor.get(origin.target("/none", adding: wish))
    #expect(first.status == 404 && first["cache-status"] == nil)
    #expect(origin.requests(to: "/none") == 1)
    #expect(
      try pictor.get(origin.target("/none", adding: wish))["cache-status"]
        == "pictor; hit; detail=failed-url")
    #expect(try pictor.get(origin.target("/text", adding: wish)).status == 415)
    // An unstorable image that needs work is not loaded twice.
    origin.serve(
      "/turned.jpg", bytes: try TestImages.jpeg(width: 90, height: 60, orientation: 6),
      headers: ["Cache-Control: no-store"])
    #expect(try pictor.get(origin.target("/turned.jpg", adding: wish)).status == 200)
    #expect(origin.requests(to: "/turned.jpg") == 1)
  }

  @Test func `a stopping server aborts streams after the grace period`() throws {
    let pictor = try PictorProcess(in: folder, ["--server.grace_time", "100ms"])
    origin.route("/a.jpg", to: .ok(image, holdingAfter: 30_000, at: Gate()))
    let client = try pictor.ask(origin.target("/a.jpg", adding: wish))
    _ = try client.read(until: "\r\n\r\n")
    _ = try client.read(Self.sent)
    #expect(try pictor.end() == 0)
    try client.waitForClose()
  }
}
