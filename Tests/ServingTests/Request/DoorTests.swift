// DoorTests: addresses of another server are answered as ours, with its errors, under our rules.

import Core
import TestSupport
import Testing

@testable import Serving

/// A peer with addresses such as `/old/300/https://h/a.jpg`: `/old/info/…` describes, `signed` in
/// place of the width is a signature, and a width of 0 is refused.
private struct OldDoor: Door {
  let name = "old"

  func claims(_ address: DoorAddress) -> Bool {
    address.path.hasPrefix("/old/") || address.path == "/" && address.query.hasPrefix("url=")
  }

  func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    var translation = DoorTranslation()
    let parts = address.path.dropFirst(5).split(separator: "/", maxSplits: 1)
    guard parts.count == 2 else {
      translation["url"] = imageURL
      return translation
    }
    translation["url"] = String(parts[1])
    switch parts[0] {
    case "info": translation.isDescription = true
    case "lost": translation.redirectsFailures = true
    case "secret": break
    case "signed":
      translation.isSigned = true
      translation["w"] = "33"
    case "late":
      translation.isSigned = true
      translation.expiry = UnixTime(seconds: 1_000)
    case "0":
      throw DoorAnswer(
        status: 418, contentType: "text/html", body: "<p>no</p>",
        fields: [HeaderField("X-Old", value: "94")].compactMap(\.self), reason: "w: it is 0")
    default: translation["w"] = String(parts[0])
    }
    return translation
  }

  func secret(of address: DoorAddress) -> DoorSecret? {
    guard address.path.hasPrefix("/old/secret") else { return nil }
    return DoorSecret(
      "Authorization", [Array("Bearer one".utf8), Array("Bearer two".utf8)],
      refusal: DoorAnswer(status: 403, body: "Forbidden", reason: "no secret"))
  }

  func answer(to error: ImageError) -> DoorAnswer {
    DoorAnswer(status: error.status == 404 ? 410 : 500, body: error.code, reason: error.message)
  }
}

@Suite(.onOwnThreads) struct DoorTests {
  private func withDoor(
    _ provider: TestProvider = .making(), prefix: String = "",
    configure: (inout ServerConfiguration) -> Void = { _ in },
    body: (HTTPClient, TestProvider) async throws -> Void
  ) async throws {
    try await withClient(provider) {
      $0.doors = [DoorPlace(OldDoor(), prefix: prefix)]
      configure(&$0)
    } body: {
      try await body($0, provider)
    }
  }

  @Test func `an address has the variant of its translation`() async throws {
    for prefix in ["", "/img/v1"] {
      try await withDoor(prefix: prefix) { client, provider in
        let first = try client.get(prefix + "/old/300/\(imageURL)")
        #expect(first.status == 200 && first["Content-Type"] == "image/jpeg")
        let own = try client.get(imageTarget + "&w=300")
        #expect(own.status == 200)
        let keys = provider.requests.withLock { $0.map(\.key) }
        #expect(keys.count == 2 && Set(keys).count == 1)
        // Where no door stands, nothing changed.
        #expect(try client.get("/other/300/\(imageURL)").status == 404)
        #expect(try client.get("/livez").status == 200)
      }
    }
  }

  @Test func `a door's secret is asked of each request, hits too`() async throws {
    try await withDoor { client, _ in
      for (field, status) in [
        ("Bearer one", 200), ("Bearer two", 200), ("Bearer one", 200), ("Bearer on", 403),
        ("", 403), ("Bearer two", 200), ("bearer one", 403),
      ] {
        let answer = try client.get(
          "/old/secret/\(imageURL)", headers: ["Authorization": field])
        #expect(answer.status == status, "\(field)")
      }
      // What an address lacks is told to those who have the secret.
      let probe = try client.get("/old/secret")
      #expect(probe.status == 403)
    }
  }

  @Test func `a door of a host has the addresses of that host alone`() async throws {
    let provider = TestProvider.making()
    try await withClient(
      provider, configure: { $0.doors = [DoorPlace(OldDoor(), host: "img.example")] }
    ) { client in
      for _ in 0..<2 {
        for (host, status) in [
          ("img.example", 200), ("IMG.example:8080", 200), ("other.example", 404),
          ("img.example.evil", 404), ("img.example", 200),
        ] {
          let text = HTTPClient.text("GET", target: "/old/300/\(imageURL)")
          try client.send(text.replacing("Host: test", with: "Host: \(host)"))
          let answer = try client.readAnswer()
          #expect(answer.status == status, "\(host)")
        }
      }
    }
  }

  @Test func `a hit through a door is a memory hit`() async throws {
    let provider = TestProvider()
    var transform = Transform()
    transform.sizing.width = 300
    let request = ImageRequest(source: try SourceURL(parsing: imageURL), transform: transform)
    provider.keep(makeVariant(request.key))
    try await withDoor(provider) { client, provider in
      for _ in 0..<3 {
        let answer = try client.get("/old/300/\(imageURL)")
        #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
      }
      #expect(provider.asked.value == 0)
    }
  }

  @Test func `the page yields to a door that has the query`() async throws {
    try await withDoor { client, _ in
      let image = try client.get("/?url=x")
      #expect(image["Content-Type"] == "image/jpeg")
      #expect(try client.get("/")["Content-Type"]?.hasPrefix("text/html") == true)
      #expect(try client.get("/?lang=en")["Content-Type"]?.hasPrefix("text/html") == true)
    }
  }

  @Test func `refusals and failures are the peer's`() async throws {
    try await withDoor(TestProvider()) { client, _ in
      let refused = try client.get("/old/0/\(imageURL)")
      #expect(refused.status == 418 && refused.body == Array("<p>no</p>".utf8))
      #expect(refused["Content-Type"] == "text/html" && refused["X-Old"] == "94")
      let missing = try client.get("/old/9/\(imageURL)")
      #expect(missing.status == 410 && missing.body == Array("source_not_found".utf8))
      // What the translation says wrongly is a failure, too.
      let wrong = try client.get("/old/many/\(imageURL)")
      #expect(wrong.status == 500 && wrong.body == Array("invalid_parameter".utf8))
    }
  }

  @Test func `a failure leads to the source where the door says so`() async throws {
    try await withDoor(TestProvider()) { client, _ in
      let lost = try client.get("/old/lost/\(imageURL)")
      #expect(lost.status == 302 && lost["Location"] == imageURL)
      let own = try client.get(imageTarget + "&onerror=redirect")
      #expect(own.status == 403)
    }
  }

  @Test func `a door opens nothing that a signature has to open`() async throws {
    for (mode, plain, odd) in [
      (SigningMode.off, 200, 200), (.options, 200, 200), (.required, 500, 500),
    ] {
      try await withDoor(configure: { $0.signing = SigningPolicy(mode: mode, keys: [testKey]) }) {
        client, _ in
        let sized = try client.get("/old/300/\(imageURL)")
        #expect(sized.status == plain)
        #expect(try client.get("/?url=x").status == odd)
        #expect(try client.get("/old/signed/\(imageURL)").status == 200)
        #expect(try client.get("/old/late/\(imageURL)").status == 500)
      }
    }
    try await withDoor(configure: { $0.presetsOnly = true }) { client, _ in
      let sized = try client.get("/old/300/\(imageURL)")
      #expect(sized.status == 500)
      #expect(try client.get("/old/signed/\(imageURL)").status == 200)
    }
  }

  @Test func `size steps hold for unsigned addresses`() async throws {
    try await withDoor(configure: { $0.sizeSteps = [320, 640] }) { client, provider in
      _ = try client.get("/old/300/\(imageURL)")
      _ = try client.get("/old/signed/\(imageURL)")
      let widths = provider.requests.withLock { $0.map(\.transform.sizing.width) }
      #expect(widths == [320, 33])
    }
  }

  @Test func `a description is one`() async throws {
    try await withDoor { client, provider in
      _ = try client.get("/old/info/\(imageURL)")
      #expect(provider.requests.withLock { $0.map(\.transform.product) } == [.info(nil)])
    }
  }

  @Test func `operators have no doors at their listener`() async throws {
    try await withServer(TestProvider.making()) {
      $0.doors = [DoorPlace(OldDoor())]
      $0.operatorAddress = ListenAddress("0")
    } body: { server in
      let port = try #require(server.operatorPort)
      #expect(try HTTPClient(port: port).get("/old/9/\(imageURL)").status == 404)
      #expect(try HTTPClient(port: server.port).get("/old/9/\(imageURL)").status == 200)
    }
  }

  @Test(arguments: [
    ("download=1", "attachment; filename=\"photo.jpg\"", "public, max-age=3600"),
    (
      "filename=Caf%C3%A9", "inline; filename=\"Caf_.jpg\"; filename*=UTF-8''Caf%C3%A9.jpg",
      "public, max-age=3600"
    ),
    ("filename=a.b&download=1", "attachment; filename=\"a.b.jpg\"", "public, max-age=3600"),
    ("maxage=60", "inline; filename=\"photo.jpg\"", "public, max-age=60, must-revalidate"),
    ("maxage=9999", "inline; filename=\"photo.jpg\"", "public, max-age=3600, must-revalidate"),
  ])
  func `a presentation is the request's, and no part of the key`(
    query: String, disposition: String, control: String
  ) async throws {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withClient(provider) { client in
      for target in [imageTarget + "&" + query, imageTarget, imageTarget + "&" + query] {
        let answer = try client.get(target)
        #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
        let isOwn = target != imageTarget
        #expect(
          answer["Content-Disposition"] == (isOwn ? disposition : "inline; filename=\"photo.jpg\""))
        // It counts from the request on, and `max-age` from when the variant was made.
        let age = try #require(Int(answer["Age"] ?? ""))
        let own = control.replacing("max-age=60,", with: "max-age=\(60 + age),")
        #expect(answer["Cache-Control"] == (isOwn ? own : "public, max-age=3600"))
      }
    }
  }
}
