// RFC 9111's requirements of an image cache, against the real program with strict settings.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CacheConformanceTests {
  /// The effect on a second request for the same URL.
  enum Reuse: String {
    /// The stored response is reused.
    case kept
    /// The origin is asked without validators.
    case asked
    /// The origin is asked with validators.
    case validated
  }

  /// A kind of response and its effect.
  struct Case: CustomTestStringConvertible {
    let fields: [String]
    let reuse: Reuse
    let status: Int
    /// The id of the case in http-tests/cache-tests that requires this; `nil` for our own rows.
    let id: String?

    init(_ fields: [String], is reuse: Reuse, status: Int = 200, id: String? = nil) {
      self.fields = fields
      self.reuse = reuse
      self.status = status
      self.id = id
    }

    /// Whether clients get an image. RFC 9110 allows a proxy to turn 200 into 203.
    var isImage: Bool { [200, 201, 203].contains(status) }

    var testDescription: String { "\(id ?? "") \(status) \(fields) is \(reuse)" }
  }

  /// The strict settings of `docs/operations.md`.
  static let strict = [
    "--freshness.default_lifetime", "0s", "--freshness.stale_while_revalidate", "0s",
    "--freshness.stale_if_error", "0s", "--download.retries", "0", "--download.breaker_threshold",
    "0",
  ]

  /// A 304 updates the stored headers (RFC 9111, section 4.3.4): the first headers, those of the
  /// 304, and whether the third request asks the origin again.
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

  @Test func `a 304 replaces the stored headers`() throws {
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

  // stale-close-must-revalidate, -proxy-revalidate, -no-cache, -s-maxage=2.
  @Test func `when the origin fails, a stale response is served only if the origin permits it`()
    throws
  {
    // Given: the defaults, which serve stale images on errors
    let (folder, origin) = (try TemporaryFolder(), try Origin())
    let pictor = try PictorProcess(
      in: folder,
      [
        "--freshness.stale_while_revalidate", "0s", "--download.retries", "0",
        // All cases have one host, whose failures are meant.
        "--download.breaker_threshold", "0",
      ])
    let image = try TestImages.jpeg(width: 16, height: 16)
    for (control, isStale) in [
      ("max-age=0, must-revalidate", false), ("max-age=0, proxy-revalidate", false),
      ("no-cache", false), ("s-maxage=0", false), ("max-age=0, s-maxage=0", false),
      ("no-store", false), ("private", false), ("max-age=0", true),
      ("max-age=0, stale-if-error=60", true), ("s-maxage=0, stale-if-error=60", true),
    ] {
      for (number, failure) in [OriginReply.closeBeforeHead, .status(503)].enumerated() {
        let path = "/\(PercentEncoding.encode(control))-\(number).jpg"
        origin.route(path) {
          $0.number == 1 ? .ok(image, headers: ["Cache-Control: \(control)"]) : failure
        }
        // When
        let answers = try (0..<2).map { _ in try pictor.get(origin.target(path)) }
        // Then
        #expect(answers[0].status == 200)
        #expect(answers[1].status == (isStale ? 200 : 502), "\(control) \(number)")
        #expect(origin.requests(to: path) == 2)
      }
    }
  }

  @Test func `each applicable required case of the public suite is asserted once`() {
    // When
    let rows = Kind.allCases.flatMap(\.cases).compactMap(\.id)
    let ids = rows + CacheConformanceExchangeTests.ids
    // Then (docs/decisions/012-cache-conformance.md)
    #expect(ids.count == 107)
    #expect(Set(ids).count == ids.count)
  }

  enum Kind: CaseIterable {
    case directives, dates, failures, statuses

    var cases: [Case] {
      switch self {
      case .directives: CacheConformanceTests.directives
      case .dates: CacheConformanceTests.dates
      case .failures: CacheConformanceTests.failures
      case .statuses: CacheConformanceTests.statuses
      }
    }
  }

  @Test(arguments: Kind.allCases)
  func `a stored response is reused exactly where RFC 9111 permits it`(kind: Kind) throws {
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
          : .status(item.status, body: item.status == 204 ? [] : image, headers: item.fields)
      }
      // When
      let answers = try (0..<2).map { _ in try client.get(origin.target(path)) }
      // Then
      #expect(answers.allSatisfy { ($0.status == 200) == item.isImage }, "\(item.testDescription)")
      let received = origin.received(at: path)
      let second = received.dropFirst().first?.headers
      let isConditional = second?["if-none-match"] != nil || second?["if-modified-since"] != nil
      let reuse: Reuse = second == nil ? .kept : isConditional ? .validated : .asked
      #expect(reuse == item.reuse, "\(item.testDescription), and was \(reuse)")
      #expect(received.count <= 2)
    }
  }
}
