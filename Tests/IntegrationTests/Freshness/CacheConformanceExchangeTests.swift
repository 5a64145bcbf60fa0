// Required cases of http-tests/cache-tests with more than two equal requests, on the program.

import Core
import Glibc
import TestSupport
import Testing

/// Tests name the ids that they assert. `CacheConformanceTests` has cases of two equal requests.
@Suite(.onOwnThreads) final class CacheConformanceExchangeTests: OriginSuite {
  private typealias Fields = KeyValuePairs<String, String>

  private let image: [UInt8]
  private let otherImage: [UInt8]

  override init() throws {
    image = try TestImages.jpeg(width: 16, height: 16)
    otherImage = try TestImages.jpeg(width: 24, height: 8)
    try super.init()
  }

  /// The ids of this file's cases, and of those that `CacheConformanceTests` has without rows.
  static let ids =
    lifetimes.map(\.id) + redirects.map { "status-\($0)-stale" } + variants.map(\.id)
    + noStore.map(\.id) + ages.map(\.id) + [
      "stale-close-must-revalidate", "stale-close-proxy-revalidate", "stale-close-no-cache",
      "stale-close-s-maxage=2", "304-etag-update-response-Cache-Control",
      "304-etag-update-response-Content-Length", "conditional-304-etag",
      "conditional-etag-precedence", "conditional-etag-vary-headers", "other-authorization",
      "query-args-different", "interim-not-cached",
    ]

  private func pictor(forwarding fields: [String] = []) throws -> PictorProcess {
    let list = fields.map { "'\($0)'" }.joined(separator: ", ")
    let rule = ["--hosts", "[{ host: '127.0.0.1', forward_headers: [\(list)] }]"]
    return try PictorProcess(
      in: folder, CacheConformanceTests.strict + (fields.isEmpty ? [] : rule))
  }

  private func age(of answer: HTTPAnswer) throws -> Int {
    try #require(answer["age"].flatMap { Int($0) })
  }

  // MARK: Time

  /// Responses that become stale, with their lifetime in seconds.
  private static let lifetimes: [(id: String, fields: [String], seconds: Int)] = [
    ("freshness-max-age-stale", ["Cache-Control: max-age=2"], 2),
    (
      "cc-resp-must-revalidate-stale",
      ["Cache-Control: max-age=2, must-revalidate", "ETag: \"abcd\""], 2
    ),
    ("freshness-max-age-s-maxage-shared-longer", ["Cache-Control: max-age=3600, s-maxage=1"], 1),
    (
      "freshness-max-age-s-maxage-shared-longer-reversed",
      ["Cache-Control: s-maxage=1, max-age=3600"], 1
    ),
    (
      "freshness-max-age-s-maxage-shared-longer-multiple",
      ["Cache-Control: max-age=3600", "Cache-Control: s-maxage=1"], 1
    ),
    (
      "freshness-max-age-ignore-quoted", ["Cache-Control: extension=\"max-age=3600\", max-age=1"],
      1
    ),
    (
      "freshness-max-age-ignore-quoted-rev",
      ["Cache-Control: max-age=1, extension=\"max-age=3600\""], 1
    ),
  ]

  @Test func `an image is served from the cache until it becomes stale`() throws {
    // Given
    let pictor = try pictor()
    let image = image
    for item in Self.lifetimes {
      origin.route("/\(item.id)") { request in
        request.headers["if-none-match"] == "\"abcd\""
          ? .status(304, headers: item.fields) : .ok(image, headers: item.fields)
      }
      #expect(try pictor.get(origin.target("/\(item.id)")).status == 200)
    }
    // When
    try blockUntil("each is stale") {
      try Self.lifetimes.allSatisfy { item in
        let answer = try pictor.get(origin.target("/\(item.id)"))
        // Then
        guard origin.requests(to: "/\(item.id)") == 1 else { return true }
        #expect(try age(of: answer) <= item.seconds, "\(item.id)")
        return false
      }
    }
    let second = origin.received(at: "/cc-resp-must-revalidate-stale")[1]
    #expect(second.headers["if-none-match"] == "\"abcd\"")
  }

  private static var ages: [(id: String, fields: [String], initial: Int)] {
    let date = CacheConformanceTests.date(_:)
    let future = ["Expires: \(date(2_592_000))", "Date: \(date(0))"]
    return [
      ("other-age-gen", ["Cache-Control: max-age=100000", "Date: \(date(0))"], 0),
      ("other-age-update-expires", future + ["Age: 30"], 30),
      ("other-age-update-max-age", ["Cache-Control: max-age=100000", "Age: 30"], 30),
    ]
  }

  @Test func `Age starts at the origin's age and grows with the time in the cache`() throws {
    // Given
    let pictor = try pictor()
    let rows = Self.ages
    for item in rows {
      origin.serve("/\(item.id)", bytes: image, headers: item.fields)
      #expect(try age(of: pictor.get(origin.target("/\(item.id)"))) >= item.initial)
    }
    // Then
    try blockUntil("each is older") {
      try rows.allSatisfy { item in
        try age(of: pictor.get(origin.target("/\(item.id)"))) > item.initial + 2
      }
    }
    #expect(rows.allSatisfy { origin.requests(to: "/\($0.id)") == 1 })
  }

  // MARK: What the origin sends

  private static let redirects = [301, 302, 303, 307, 308]

  @Test(arguments: redirects)
  func `a stale redirect is requested again`(status: Int) throws {
    // Given (status-301-stale and the like)
    let pictor = try pictor()
    let date = CacheConformanceTests.date(_:)
    let stale = [
      "Expires: \(date(-5_000))", "Last-Modified: \(date(-100_000))", "Date: \(date(0))",
    ]
    origin.serve("/a.jpg", bytes: image, headers: ["Cache-Control: max-age=100000"])
    origin.route("/r", to: .status(status, headers: ["Location: \(origin.url("/a.jpg"))"] + stale))
    // When
    let answers = try (0..<2).map { _ in try pictor.get(origin.target("/r")) }
    // Then
    #expect(answers.allSatisfy { $0.status == 200 })
    #expect(origin.requests(to: "/r") == 2)
  }

  private static let noStore = [
    (id: "cc-resp-no-store-old-new", control: "no-store"),
    (id: "cc-resp-no-store-old-max-age", control: "no-store, max-age=0"),
  ]

  @Test(arguments: noStore.map(\.control))
  func `a fresh image is served although the origin would now send no-store`(
    control: String
  ) throws {
    // Given (cc-resp-no-store-old-new, cc-resp-no-store-old-max-age)
    let pictor = try pictor()
    let image = image
    let otherImage = otherImage
    let expires = "Expires: \(CacheConformanceTests.date(10_000))"
    origin.route("/a.jpg") { request in
      request.number == 1
        ? .ok(image, headers: ["Cache-Control: max-age=10000", expires])
        : .ok(otherImage, headers: ["Cache-Control: \(control)"])
    }
    // When
    let answers = try (0..<3).map { _ in try pictor.get(origin.target("/a.jpg")) }
    // Then
    #expect(answers.allSatisfy { $0.status == 200 && $0.body == answers[0].body })
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `a 304 updates the lifetime and not the length`() throws {
    // Given (304-etag-update-response-Cache-Control, 304-etag-update-response-Content-Length)
    let pictor = try pictor()
    let image = image
    origin.route("/a.jpg") { request in
      guard request.headers["if-none-match"] == "\"abcd\"" else {
        return .ok(image, headers: ["Cache-Control: max-age=0", "ETag: \"abcd\""])
      }
      let fields = ["Cache-Control: max-age=3600", "ETag: \"abcd\"", "Content-Length: 10"]
      return OriginReply([.send(OriginReply.head(304, headers: fields))])
    }
    // When
    let answers = try (0..<3).map { _ in try pictor.get(origin.target("/a.jpg")) }
    // Then
    #expect(answers[0]["cache-control"]?.hasPrefix("public, max-age=0") == true)
    for answer in answers {
      #expect(answer.status == 200 && answer.body == answers[0].body)
      #expect(answer["content-length"] == "\(answers[0].body.count)")
    }
    #expect(answers.dropFirst().allSatisfy { $0["cache-control"] == "public, max-age=3600" })
    #expect(origin.requests(to: "/a.jpg") == 2)
  }

  @Test func `an interim response is not stored`() throws {
    // Given (interim-not-cached)
    let pictor = try pictor()
    let hints = OriginReply.head(103, headers: ["Link: </styles.css>; rel=preload; as=style"])
    let reply = OriginReply.ok(image, headers: ["Cache-Control: max-age=100000"])
    origin.route("/a.jpg", to: OriginReply([.send(hints)] + reply.steps))
    // When
    let answers = try (0..<2).map { _ in try pictor.get(origin.target("/a.jpg")) }
    // Then
    for answer in answers {
      #expect(answer.status == 200 && answer["link"] == nil && answer.body == answers[0].body)
    }
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  /// Ten cases for hop-by-hop headers: `headers-omit-…-listed-in-Connection`, `headers-store-…`.
  @Test func `hop-by-hop headers and those that Connection lists are not forwarded`() throws {
    // Given
    let pictor = try pictor()
    let names = [
      "A", "B", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authentication-Info",
      "Proxy-Authorization", "Proxy-Connection", "TE", "Upgrade",
    ]
    let fields = names.map { "\($0): of-origin" } + ["Connection: a, b, of-origin"]
    let head = OriginReply.head(
      200, headers: ["Cache-Control: max-age=3600", "Transfer-Encoding: chunked"] + fields)
    let body = OriginReply.chunk(image) + Array("0\r\n\r\n".utf8)
    origin.route("/a.jpg", to: OriginReply([.send(head), .send(body)]))
    // When
    let answers = try (0..<2).map { _ in try pictor.get(origin.target("/a.jpg")) }
    // Then
    for answer in answers {
      #expect(answer.status == 200 && answer["transfer-encoding"] == nil)
      #expect(!answer.headers.contains { $0.value.contains("of-origin") })
    }
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  // MARK: What the client sends

  private static let variants: [(id: String, vary: String, stored: Fields, sent: Fields)] = [
    ("vary-no-match", "Foo", ["Foo": "1"], ["Foo": "2"]),
    ("vary-omit-stored", "Foo", [:], ["Foo": "1"]),
    ("vary-omit", "Foo", ["Foo": "1"], [:]),
    ("vary-2-no-match", "Foo, Bar", ["Foo": "1", "Bar": "abc"], ["Foo": "2", "Bar": "abc"]),
    ("vary-2-match-omit", "Foo, Bar", ["Foo": "1", "Bar": "abc"], [:]),
    (
      "vary-3-no-match", "Foo, Bar, Baz", ["Foo": "1", "Bar": "abc", "Baz": "789"],
      ["Foo": "2", "Bar": "abc", "Baz": "789"]
    ),
    (
      "vary-3-order", "Foo, Bar, Baz", ["Foo": "1", "Bar": "abc", "Baz": "789"],
      ["Foo": "1", "Baz": "789", "Bar": "abcde"]
    ),
  ]

  @Test func `a request with other values of the Vary headers is loaded again`() throws {
    // Given
    let pictor = try pictor(forwarding: ["Foo", "Bar", "Baz"])
    let modified = "Last-Modified: \(CacheConformanceTests.date(-3_000))"
    for item in Self.variants {
      let path = "/\(item.id)"
      origin.serve(
        path, bytes: image,
        headers: ["Cache-Control: max-age=5000", modified, "Vary: \(item.vary)"])
      for (number, fields) in [item.stored, item.sent, item.stored].enumerated() {
        // When
        let answer = try pictor.connect().get(origin.target(path), headers: fields)
        // Then
        #expect(answer.status == 200)
        #expect(origin.requests(to: path) == min(number + 1, 2), "\(item.id)")
      }
    }
  }

  @Test func `a revalidation sends the headers that Vary names`() throws {
    // Given (conditional-etag-vary-headers)
    let pictor = try pictor(forwarding: ["Abc"])
    origin.serve(
      "/a.jpg", bytes: image,
      headers: ["Cache-Control: max-age=0", "ETag: \"abcdef\"", "Vary: Abc"])
    // When
    for _ in 0..<2 {
      _ = try pictor.connect().get(origin.target("/a.jpg"), headers: ["Abc": "123"])
    }
    // Then
    let received = origin.received(at: "/a.jpg")
    #expect(received.count == 2 && received.allSatisfy { $0.headers["abc"] == "123" })
    #expect(received.last?.headers["if-none-match"] == "\"abcdef\"")
  }

  @Test func `a response to a request with Authorization is used only for that request`() throws {
    // Given (other-authorization)
    let pictor = try pictor(forwarding: ["Authorization"])
    origin.serve("/a.jpg", bytes: image, headers: ["Cache-Control: max-age=100000"])
    // When
    for fields in [["Authorization": "FOO"], [:], ["Authorization": "FOO"]] as [Fields] {
      let answer = try pictor.connect().get(origin.target("/a.jpg"), headers: fields)
      #expect(answer.status == 200)
    }
    // Then
    let received = origin.received(at: "/a.jpg").map { $0.headers["authorization"] }
    #expect(received == ["FOO", nil, "FOO"])
  }

  @Test func `a 304 has the ETag, and If-None-Match takes precedence over If-Modified-Since`()
    throws
  {
    // Given (conditional-304-etag, conditional-etag-precedence)
    let pictor = try pictor()
    let date = CacheConformanceTests.date(_:)
    origin.serve(
      "/a.jpg", bytes: image,
      headers: [
        "Cache-Control: max-age=100000", "ETag: \"abcdef\"", "Last-Modified: \(date(-5_000))",
      ])
    let tag = try #require(try pictor.get(origin.target("/a.jpg"))["etag"])
    let older = ["If-None-Match": tag, "If-Modified-Since": date(-5_001)] as Fields
    for fields in [["If-None-Match": tag], older] as [Fields] {
      // When
      let answer = try pictor.connect().get(origin.target("/a.jpg"), headers: fields)
      // Then
      #expect(answer.status == 304 && answer["etag"] == tag && answer.body.isEmpty)
    }
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `different query arguments are different images`() throws {
    // Given (query-args-different)
    let pictor = try pictor()
    origin.serve("/a.jpg", bytes: image, headers: ["Cache-Control: max-age=100000"])
    // When
    for argument in ["test=1", "test=2", "test=1"] {
      #expect(try pictor.get(origin.target("/a.jpg?\(argument)")).status == 200)
    }
    // Then
    #expect(origin.received(at: "/a.jpg").map(\.target) == ["/a.jpg?test=1", "/a.jpg?test=2"])
  }
}
