// NegotiationTests: tests of format=auto over a socket: cache keys, Vary and redirects.

import Core
import TestSupport
import Testing

@testable import Serving

/// Chrome's `Accept`.
private let chrome = "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"
/// That of Safari before WebP.
private let oldSafari = "image/png,image/svg+xml,image/*;q=0.8,video/*;q=0.8,*/*;q=0.5"
/// That of curl.
private let curl = "*/*"

@Suite(.onOwnThreads) struct NegotiationTests {
  /// Makes each image in the first accepted format, as a worker would.
  private let maker = TestProvider { request throws(ImageError) in
    let format = request.transform.format ?? request.transform.accepted.first ?? .jpeg
    return makeDelivery(makeVariant(request.key, info: makeInfo(format)))
  }

  @Test func `the same URL returns the format that Accept names, with Vary`() async throws {
    try await withClient(maker) { client in
      for (accept, type) in [
        (chrome, "image/avif"), ("image/webp,*/*", "image/webp"), (oldSafari, "image/jpeg"),
        (curl, "image/jpeg"), ("image/avif;q=0,image/webp;q=0.1", "image/webp"),
      ] {
        for target in [imageTarget, imageTarget + "&format=auto"] {
          let answer = try client.get(target, headers: ["Accept": accept])
          #expect(answer["Content-Type"] == type, "\(accept)")
          #expect(answer["Vary"] == "Accept")
        }
      }
      let none = try client.get(imageTarget)
      #expect(none["Content-Type"] == "image/jpeg" && none["Vary"] == "Accept")
    }
    #expect(
      Set(maker.requests.withLock { $0.map(\.key.text) })
        == [imageURL + " ", imageURL + " auto=avif,webp", imageURL + " auto=webp"])
  }

  @Test func `a memory hit depends on the accepted formats, including 304`() async throws {
    let provider = TestProvider()
    let plain = try makeRequest()
    for (request, format) in [
      (plain, ImageFormat.jpeg), (plain.accepting([.avif, .webp]), .avif),
      (plain.accepting([.webp]), .webp),
    ] {
      var info = makeInfo(format)
      info.etag = "\"\(format.rawValue)\""
      provider.keep(makeVariant(request.key, info: info))
    }
    try await withClient(provider, configure: { $0.workers = 1 }) { client in
      for _ in 1...3 {
        for (accept, format) in [
          (chrome, "avif"), ("image/webp", "webp"), (curl, "jpeg"), ("image/jxl", "jpeg"),
        ] {
          let answer = try client.get(imageTarget, headers: ["Accept": accept])
          #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
          #expect(answer["Content-Type"] == "image/" + format)
          #expect(answer["Vary"] == "Accept")
        }
        let other = try client.get(
          imageTarget, headers: ["Accept": chrome, "If-None-Match": "\"webp\""])
        #expect(other.status == 200)
        let same = try client.get(
          imageTarget, headers: ["Accept": "image/webp", "If-None-Match": "\"webp\""])
        #expect(same.status == 304 && same["Vary"] == "Accept")
      }
      // Several lines form one list.
      try client.send(
        "GET \(imageTarget) HTTP/1.1\r\nHost: t\r\nAccept: text/html\r\n"
          + "accept: image/webp\r\n\r\n")
      #expect(try client.readAnswer()["Content-Type"] == "image/webp")
    }
    #expect(provider.asked.value == 0)
  }

  @Test func `a cacheable failure states that it depends on Accept`() async throws {
    let provider = TestProvider { _ throws(ImageError) in
      throw .remembered(.undecodable(detail: ""), seconds: 60, isRepeated: false)
    }
    try await withClient(provider) { client throws in
      #expect(try client.get(imageTarget)["Vary"] == "Accept")
      #expect(try client.get(imageTarget + "&format=png")["Vary"] == nil)
    }
  }

  @Test func `operators look up and prefetch the variant of their own Accept`()
    async throws
  {
    let services = TestServices()
    try await withOperators(services) { client, _ in
      for accept in [curl, chrome] {
        let headers: KeyValuePairs = ["Authorization": "Bearer " + operatorToken, "Accept": accept]
        _ = try client.get(
          "/admin/cache" + imageTarget.dropFirst("/image".count), headers: headers)
        _ = try client.request(
          "POST", target: "/admin/prefetch", headers: headers, body: Array(imageURL.utf8))
      }
    }
    let keys = [imageURL + " ", imageURL + " auto=avif,webp"]
    #expect(services.looked.withLock { $0.map(\.key.text) } == keys)
    let lines = try ["1", "2"].map { id in
      try #require(services.lists.withLock { $0[id]?.first }).request.get().key.text
    }
    #expect(lines == keys)
  }

  @Test func `a redirect leads to the format of the response`() async throws {
    try await withClient(maker, configure: { $0.redirectsAuto = true }) { client in
      let answer = try client.get(
        "/im%61ge?format=auto&url=https://example.org/a/é.png&w=3",
        headers: ["Accept": chrome, "If-None-Match": "*"])
      #expect(answer.status == 302)
      let location = "im%61ge?url=https://example.org/a/%C3%A9.png&w=3&format=avif"
      #expect(answer["Location"] == location)
      #expect(answer["Vary"] == "Accept")
      // A shared cache that ignores Vary would redirect all clients there.
      #expect(answer["Cache-Control"] == "private, max-age=3600")
      #expect(answer.body.isEmpty)
      let image = try client.get("/" + location, headers: ["Accept": curl])
      #expect(image.status == 200 && image["Content-Type"] == "image/avif")
      #expect(image["Vary"] == nil && image["Cache-Control"] == "public, max-age=3600")
      let head = try client.head(imageTarget)
      #expect(head.status == 302)
      #expect(head["Location"] == imageTarget.dropFirst() + "&format=jpeg")
    }
  }

  @Test func `a redirect is sent for every target that can be followed`() async throws {
    try await withServer(maker, configure: { $0.redirectsAuto = true }) { server in
      let prefix = "/image?url=https://example.org/"
      let longest = RequestFraming.longestTarget - prefix.utf8.count
      for (letter, count, status) in [
        ("x", longest, 414), ("x", longest - 12, 302), ("x", longest - 1_000, 302),
        ("é", longest / 2, 414), ("é", longest / 6 - 10, 302),
      ] {
        let target = prefix + String(repeating: letter, count: count)
        let client = try HTTPClient(port: server.port)
        // When
        let answer = try client.get(
          target, headers: ["Accept": chrome, "X-Other": String(repeating: "y", count: 4_500)])
        // Then
        #expect(answer.status == status, "\(letter) \(count)")
        guard let location = answer["Location"] else { continue }
        #expect(try client.get("/" + location, headers: ["Accept": chrome]).status == 200)
      }
    }
  }

  @Test func `hits are redirected as well, and errors are not`()
    async throws
  {
    let provider = TestProvider()
    provider.keep(makeVariant(try makeRequest().key))
    try await withClient(provider, configure: { $0.redirectsAuto = true }) { client in
      let answer = try client.get(imageTarget)
      #expect(answer.status == 302)
      #expect(answer["Cache-Status"] == "pictor; hit; detail=memory")
      #expect(try client.get(imageTarget + "&w=0").status == 400)
      #expect(try client.get(imageTarget + "&w=5").status == 404)
    }
    #expect(provider.asked.value == 1)
  }
}
