// Unstorable responses serve earlier requests only. Later ones load again, some at a time.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class UnsharedAnswerTests: OriginSuite {
  private let image: [UInt8]
  private let gate = Gate()

  override init() throws {
    image = try TestImages.jpeg(width: 1_600, height: 1_200, bare: true)
    try super.init()
  }

  private func serve(_ control: String) {
    let image = image
    origin.route(
      "/a.jpg",
      to: OriginReply([
        .send(
          OriginReply.head(
            200, headers: ["Content-Length: \(image.count)", "Cache-Control: \(control)"])),
        .send(Array(image.prefix(30_000))), .hold(gate), .send(Array(image.dropFirst(30_000))),
      ]))
  }

  @Test(arguments: ["no-store", "private, max-age=60"])
  func `a request after the head of an unstorable response gets its own response`(
    control: String
  ) throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    serve(control)
    let target = origin.target("/a.jpg", adding: "&format=jpeg&progressive=1")
    var clients: [HTTPClient] = []
    // When: each client requests the image after the previous one has received bytes
    for number in 1...3 {
      let client = try pictor.connect()
      clients.append(client)
      try client.send(HTTPClient.text("GET", target: target))
      // Then
      #expect(try client.read(until: "\r\n\r\n").contains("Cache-Control: no-store"))
      #expect(try client.read(1_000) == Array(image[..<1_000]))
      #expect(origin.requests(to: "/a.jpg") == number)
    }
    gate.open()
    for client in clients {
      #expect(try client.read(image.count - 1_000) == Array(image[1_000...]))
    }
  }

  @Test func `a variant of an unstorable source is not shared with later requests`() throws {
    // Given
    let pictor = try PictorProcess(in: folder)
    serve("no-store")
    let target = origin.target("/a.jpg", adding: "&w=100")
    var clients: [HTTPClient] = []
    // When: requests for one variant arrive while its source does
    try blockUntil("a request after the head loads anew") {
      let client = try pictor.ask(target)
      clients.append(client)
      try blockUntil("the origin is asked") { origin.requests(to: "/a.jpg") >= 1 }
      return origin.requests(to: "/a.jpg") >= 2
    }
    gate.open()
    // Then
    for client in clients { #expect(try client.readAnswer().status == 200) }
  }
}
