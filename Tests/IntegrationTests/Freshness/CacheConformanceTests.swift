// The requirements of RFC 9111 that apply to an image cache, against the real program with strict settings.

import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CacheConformanceTests {
  /// What a second request for the same URL comes to.
  enum Reuse: Equatable {
    /// Answered from what is kept.
    case kept
    /// The origin is asked, without validators.
    case asked
    /// The origin is asked whether what is kept is still right.
    case validated
  }

  /// One kind of answer and what follows from it.
  struct Case: CustomTestStringConvertible {
    let fields: [String]
    let reuse: Reuse
    var status = 200

    init(_ fields: [String], _ reuse: Reuse, status: Int = 200) {
      self.fields = fields
      self.reuse = reuse
      self.status = status
    }

    var testDescription: String { "\(status) \(fields) is \(reuse)" }
  }

  /// What `docs/operations.md` lists as strict.
  static let strict = [
    "--freshness.default_lifetime", "0s", "--freshness.stale_while_revalidate", "0s",
    "--freshness.stale_if_error", "0s", "--download.retries", "0", "--download.breaker_threshold",
    "0",
  ]

  private static func date(_ seconds: Int) -> String {
    HTTPDate.text(of: UnixTime(seconds: UnixTime.now.seconds + seconds))
  }

  private static let tag = "ETag: \"abcd\""

  /// `Cache-Control` and `Age`.
  static let directives: [Case] = [
    Case([], .asked), Case([tag], .validated),
    Case(["Cache-Control: max-age=3600"], .kept), Case(["Cache-Control: MaX-aGe=3600"], .kept),
    Case(["Cache-Control: max-age=003600"], .kept),
    Case(["Cache-Control: max-age=\"3600\""], .kept),
    Case(["Cache-Control: max-age='3600'"], .asked), Case(["Cache-Control: max-age=0"], .asked),
    Case(["Cache-Control: max-age=-3600"], .asked), Case(["Cache-Control: max-age=a36"], .asked),
    Case(["Cache-Control: max-age=36a"], .asked), Case(["Cache-Control: max-age=36.5"], .asked),
    Case(["Cache-Control: max-age"], .asked),
    Case(["Cache-Control: max-age=2147483648"], .kept),
    Case(["Cache-Control: max-age=99999999999"], .kept),
    Case(["Cache-Control: foobar, max-age=3600"], .kept),
    Case(["Cache-Control: foobar=baz, max-age=3600"], .kept),
    Case(["Cache-Control: other=\"max-age=3600\", max-age=0"], .asked),
    Case(["Cache-Control: max-age=0, other=\"max-age=3600\""], .asked),
    Case(["Cache-Control: max-age=3600, max-age=1"], .asked),
    Case(["Cache-Control: max-age=3600", "Cache-Control: max-age=1"], .asked),
    Case(["Cache-Control: s-maxage=3600"], .kept),
    Case(["Cache-Control: max-age=0, s-maxage=3600"], .kept),
    Case(["Cache-Control: max-age=3600, s-maxage=0"], .asked),
    Case(["Cache-Control: s-maxage=0, max-age=3600"], .asked),
    Case(["Cache-Control: max-age=3600", "Cache-Control: s-maxage=0"], .asked),
    Case(["Cache-Control: no-store"], .asked), Case(["Cache-Control: No-StOrE"], .asked),
    Case(["Cache-Control: no-store, max-age=3600", tag], .asked),
    Case(["Cache-Control: max-age=3600", "Cache-Control: no-store", tag], .asked),
    Case(["Cache-Control: other=\"never ends, no-store, max-age=3600", tag], .asked),
    Case(["Cache-Control: other=\"never ends", "Cache-Control: no-store, max-age=3600"], .asked),
    Case(["Cache-Control: other=\"no-store\", max-age=3600"], .kept),
    Case(["Cache-Control: no-store, must-understand, max-age=3600"], .kept),
    Case(["Cache-Control: private, max-age=3600", tag], .asked),
    Case(["Cache-Control: private=\"x-a\", max-age=3600", tag], .asked),
    Case(["Cache-Control: private, must-understand, max-age=3600", tag], .asked),
    Case(["Cache-Control: no-cache, max-age=3600"], .asked),
    Case(["Cache-Control: No-CaChE, max-age=3600", tag], .validated),
    Case(["Cache-Control: no-cache=\"x-a, x-b\", max-age=3600", tag], .validated),
    Case(["Cache-Control: max-age=3600, must-revalidate", tag], .kept),
    Case(["Cache-Control: max-age=0, must-revalidate", tag], .validated),
    Case(["Cache-Control: max-age=0, immutable", tag], .validated),
    Case(["Cache-Control: max-age=3600", "Age: 7200"], .asked),
    Case(["Cache-Control: max-age=3600", "Age: 7200, 0"], .asked),
    Case(["Cache-Control: max-age=3600", "Age: 0, 7200"], .kept),
    Case(["Cache-Control: max-age=3600", "Age: 0", "Age: 7200"], .kept),
    Case(["Cache-Control: max-age=3600", "Age: 7200", "Age: 0"], .asked),
    Case(["Cache-Control: max-age=3600", "Age: 2147483648"], .asked),
    Case(["Cache-Control: max-age=3600", "Age: 99999999999"], .asked),
    Case(["Cache-Control: max-age=3600", "Age: abc"], .kept),
    Case(["Cache-Control: max-age=3600", "Age: -7200"], .kept),
    Case(["Cache-Control: max-age=3600", "Age: 7200.0"], .kept),
    Case(["Cache-Control: max-age=3600", "Set-Cookie: a=b"], .kept),
    Case(["Cache-Control: max-age=3600", "Pragma: no-cache"], .kept),
    Case(["Cache-Control: max-age=3600", "Vary: *"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary: *, *"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary: *", "Vary: *"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary: , *"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary:", "Vary: *"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary: Foo, *"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary: *, Foo"], .asked),
    Case(["Cache-Control: max-age=3600", "Vary: Foo"], .kept),
  ]

  /// `Expires`, `Date` and `Last-Modified`.
  static var dates: [Case] {
    let (now, future, past) = (date(0), date(10_000), date(-10_000))
    return [
      Case(["Expires: \(future)", "Date: \(now)"], .kept), Case(["Expires: \(future)"], .kept),
      Case(["Expires: \(past)", "Date: \(now)"], .asked), Case(["Expires: 0"], .asked),
      Case(["Expires: \(now)", "Date: \(now)"], .asked), Case(["Expires: soon", tag], .validated),
      Case(["Expires: \(future)", "Cache-Control: max-age=0"], .asked),
      Case(["Expires: \(past)", "Cache-Control: max-age=3600"], .kept),
      Case(["Expires: 0", "Cache-Control: s-maxage=3600"], .kept),
      Case(["Expires: \(date(3_600))", "Date: \(date(3_600))"], .asked),
      Case(["Expires: \(future)", "Date: \(now)", "Age: 20000"], .asked),
      // RFC 850's form, and asctime's.
      Case(["Expires: Thursday, 18-Aug-50 02:01:18 GMT"], .kept),
      Case(["Expires: Thu Aug 18 02:01:18 2050"], .kept),
      Case(["Expires: Mon Aug  1 02:01:18 2050"], .kept),
      // What is no date in HTTP means the past, however near it comes (section 5.3).
      Case(["Expires: Thu, 18 Aug 2050 02:01:18 UTC"], .asked),
      Case(["Expires: Thu 18 Aug 2050 02:01:18 GMT"], .asked),
      Case(["Expires: Thu, 18  Aug  2050 02:01:18 GMT"], .asked),
      Case(["Expires: Thu, 18-Aug-2050 02:01:18 GMT"], .asked),
      Case(["Expires: Thu, 18 Aug 50 02:01:18 GMT"], .asked),
      Case(["Expires: Thu, 18 Aug 2050 02.01.18 GMT"], .asked),
      Case(["Expires: Thu, 18 Aug 2050 2:01:18 GMT"], .asked),
      Case(["Expires: Thu, 18 AUG 2050 02:01:18 gmt"], .asked),
      Case(["Expires: Thu,18 Aug 2050 02:01:18 GMT"], .asked),
      Case(["Expires: 18 Aug 2050 02:01:18 GMT"], .asked),
      Case(["Last-Modified: \(date(-100_000))", "Date: \(now)"], .kept),
      Case(["Last-Modified: \(now)", "Date: \(now)"], .validated),
      // Lenient where the RFC is: what is only compared, or adds up to an age.
      Case(["Cache-Control: max-age=3600", "Date: Thu 18 Aug 2050 02:01:18 UTC"], .kept),
    ]
  }

  /// Answers without an image: what a cache must not serve unasked, and what a negative cache may.
  static let failures: [Case] =
    [404, 410].flatMap { status in
      [
        Case([], .kept, status: status),
        Case(["Cache-Control: max-age=3600"], .kept, status: status),
        Case(["Cache-Control: no-store"], .asked, status: status),
        Case(["Cache-Control: private, max-age=3600"], .asked, status: status),
        Case(["Cache-Control: no-cache"], .asked, status: status),
        Case(["Cache-Control: max-age=0"], .asked, status: status),
        Case(["Cache-Control: max-age=10", "Age: 20"], .asked, status: status),
        Case(["Cache-Control: max-age=3600, s-maxage=0"], .asked, status: status),
        Case(["Expires: 0"], .asked, status: status),
        Case(["Expires: Thu, 01 Dec 1994 16:00:00 GMT"], .asked, status: status),
        Case(["Cache-Control: max-age=3600", "Vary: *"], .asked, status: status),
      ]
    }
    + [204, 206, 299, 400, 403, 429, 451, 500, 502, 503, 504, 599].flatMap { status in
      [
        Case(["Cache-Control: max-age=3600"], .asked, status: status),
        Case(["Last-Modified: Thu, 01 Dec 1994 16:00:00 GMT"], .asked, status: status),
        Case(["Cache-Control: max-age=3600, no-store, must-understand"], .asked, status: status),
      ]
    }

  /// What a 304 says takes the place of what was kept (RFC 9111, section 4.3.4): what comes first, what a 304 brings, and
  /// whether the third request asks the origin once more.
  static var updates: [(kept: [String], sent: [String], isAsked: Bool)] {
    [
      (["Cache-Control: max-age=0"], ["Cache-Control: max-age=3600"], false),
      (["Cache-Control: max-age=0"], [], true),
      (["Cache-Control: max-age=0", "Expires: 0"], ["Expires: \(date(3_600))"], true),
      (["Expires: 0"], ["Expires: \(date(3_600))"], false),
      (["Expires: 0"], ["Cache-Control: max-age=3600"], false),
      (["Cache-Control: no-cache"], ["Cache-Control: max-age=3600"], false),
      (["Cache-Control: max-age=3600", "Age: 7200"], ["Cache-Control: max-age=3600"], false),
      (["Cache-Control: max-age=3600", "Age: 7200"], ["Age: 7200"], true),
      (["Cache-Control: max-age=3600", "Vary: *"], ["Cache-Control: max-age=3600"], true),
      (["Cache-Control: max-age=0"], ["Cache-Control: no-store, max-age=3600"], true),
    ]
  }

  @Test func `what a 304 says takes the place of what was kept`() throws {
    // Given
    let (folder, origin) = (try TemporaryFolder(), try Origin())
    let pictor = try PictorProcess(in: folder, Self.strict)
    let image = try TestImages.jpeg(width: 16, height: 16)
    for (number, item) in Self.updates.enumerated() {
      let path = "/\(number).jpg"
      origin.route(path) { request in
        request.headers["if-none-match"] == "\"abcd\""
          ? .status(304, headers: item.sent + [Self.tag])
          : .ok(image, headers: item.kept + [Self.tag])
      }
      // When
      let answers = try (0..<3).map { _ in try pictor.get(origin.target(path)) }
      // Then
      #expect(answers.allSatisfy { $0.status == 200 && $0.body == answers[0].body }, "\(item)")
      let received = origin.received(at: path)
      #expect(received.count == (item.isAsked ? 3 : 2), "\(item)")
      #expect(received.dropFirst().first?.headers["if-none-match"] == "\"abcd\"", "\(item)")
    }
  }

  @Test(arguments: [
    ("max-age=0, must-revalidate", false), ("max-age=0, proxy-revalidate", false),
    ("no-cache", false), ("s-maxage=0", false), ("max-age=0, s-maxage=0", false),
    ("no-store", false), ("private", false), ("max-age=0", true),
    ("max-age=0, stale-if-error=60", true), ("s-maxage=0, stale-if-error=60", true),
  ])
  func `what is stale stands in for a failed origin exactly where its origin lets it`(
    control: String, isStale: Bool
  ) throws {
    // Given: the defaults, which serve stale images on errors
    let (folder, origin) = (try TemporaryFolder(), try Origin())
    let pictor = try PictorProcess(
      in: folder, ["--freshness.stale_while_revalidate", "0s", "--download.retries", "0"])
    let image = try TestImages.jpeg(width: 16, height: 16)
    for (number, failure) in [OriginReply.closeBeforeHead, .status(503)].enumerated() {
      let path = "/\(number).jpg"
      origin.route(path) {
        $0.number == 1 ? .ok(image, headers: ["Cache-Control: \(control)"]) : failure
      }
      // When
      let answers = try (0..<2).map { _ in try pictor.get(origin.target(path)) }
      // Then
      #expect(answers[0].status == 200)
      #expect(answers[1].status == (isStale ? 200 : 502), "\(number)")
      #expect(origin.requests(to: path) == 2)
    }
  }

  @Test
  func `an answer that varies is for requests with the same fields, where rules forward them`()
    throws
  {
    // Given
    let (folder, origin) = (try TemporaryFolder(), try Origin())
    let rule = "[{ host: '127.0.0.1', forward_headers: ['Foo', 'Bar', 'Baz'] }]"
    let pictor = try PictorProcess(in: folder, Self.strict + ["--hosts", rule])
    let image = try TestImages.jpeg(width: 16, height: 16)
    origin.serve(
      "/a.jpg", image, headers: ["Cache-Control: max-age=5000", "Vary: Foo, Bar, Baz"])
    // Each differs from all others in what the origin is sent; the order of fields and what is not named do not count.
    let requests: [(fields: KeyValuePairs<String, String>, isNew: Bool)] = [
      ([:], true), (["Foo": "1"], true), (["Foo": "1"], false), (["Foo": "2"], true),
      (["Foo": "1", "Bar": "abc"], true), (["Bar": "abc", "Foo": "1"], false),
      (["Foo": "2", "Bar": "abc"], true), (["Foo": "1", "Baz": "789", "Bar": "abcde"], true),
      (["Foo": "1", "Bar": "abc", "Baz": "789"], true), (["Foo": "1", "Other": "3"], false),
      (["Foo": "1, 2"], true), (["Foo": "1", "foo": "2"], false), ([:], false),
    ]
    for (fields, isNew) in requests {
      let before = origin.requests(to: "/a.jpg")
      // When
      let answer = try pictor.connect().get(origin.target("/a.jpg"), headers: fields)
      // Then
      #expect(answer.status == 200)
      #expect(origin.requests(to: "/a.jpg") - before == (isNew ? 1 : 0), "\(fields)")
    }
  }

  enum Kind: CaseIterable {
    case directives, dates, failures

    var cases: [Case] {
      switch self {
      case .directives: CacheConformanceTests.directives
      case .dates: CacheConformanceTests.dates
      case .failures: CacheConformanceTests.failures
      }
    }
  }

  @Test(arguments: Kind.allCases)
  func `what is kept is the answer exactly where RFC 9111 lets it`(kind: Kind) throws {
    // Given
    let (folder, origin) = (try TemporaryFolder(), try Origin())
    let pictor = try PictorProcess(in: folder, Self.strict)
    let image = try TestImages.jpeg(width: 16, height: 16)
    let client = try pictor.connect()
    for (number, item) in kind.cases.enumerated() {
      let path = "/\(number).jpg"
      origin.route(path) { request in
        let isValidated =
          request.headers["if-none-match"] != nil || request.headers["if-modified-since"] != nil
        return isValidated
          ? .status(304, headers: item.fields)
          : .status(item.status, item.status == 204 ? [] : image, headers: item.fields)
      }
      // When
      let answers = try (0..<2).map { _ in try client.get(origin.target(path)) }
      // Then
      let isImage = item.status == 200
      #expect(answers.allSatisfy { ($0.status == 200) == isImage }, "\(item.testDescription)")
      let received = origin.received(at: path)
      let second = received.dropFirst().first?.headers
      let isConditional = second?["if-none-match"] != nil || second?["if-modified-since"] != nil
      let reuse: Reuse = second == nil ? .kept : isConditional ? .validated : .asked
      #expect(reuse == item.reuse, "\(item.testDescription), and was \(reuse)")
      #expect(received.count <= 2)
    }
  }
}
