// CacheConformanceTests+Rows: kinds of responses, and each one's effect on a second request.

import Core

extension CacheConformanceTests {
  static func date(_ seconds: Int) -> String {
    HTTPDate.text(of: UnixTime(seconds: UnixTime.now.seconds + seconds))
  }

  static let tag = "ETag: \"abcd\""

  /// Reads a row a line: the effect, the id of the case that requires it, and the fields.
  private static func rows(_ text: String) -> [Case] {
    text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
      var parts = line.split(separator: " | ").map(String.init)
      let head = parts.removeFirst().split(separator: " ")
      guard let effect = Reuse(rawValue: String(head[0])) else { preconditionFailure("\(line)") }
      return Case(
        parts, is: effect, id: head.dropFirst().first.map { $0.filter { !"[]".contains($0) } })
    }
  }

  /// `Cache-Control` and `Age`.
  static let directives = rows(
    """
    asked
    validated | ETag: "abcd"
    kept | Cache-Control: max-age=3600
    kept | Cache-Control: MaX-aGe=3600
    kept [freshness-max-age-leading-zero] | Cache-Control: max-age=003600
    kept | Cache-Control: max-age="3600"
    asked [freshness-max-age-single-quoted] | Cache-Control: max-age='3600'
    asked [freshness-max-age-0] | Cache-Control: max-age=0
    asked [freshness-max-age-negative] | Cache-Control: max-age=-3600
    asked | Cache-Control: max-age=a36
    asked | Cache-Control: max-age=36a
    asked | Cache-Control: max-age=36.5
    asked | Cache-Control: max-age
    kept | Cache-Control: max-age=2147483648
    kept | Cache-Control: max-age=99999999999
    kept | Cache-Control: foobar, max-age=3600
    kept | Cache-Control: foobar=baz, max-age=3600
    asked | Cache-Control: other="max-age=3600", max-age=0
    asked | Cache-Control: max-age=0, other="max-age=3600"
    asked | Cache-Control: max-age=3600, max-age=1
    asked | Cache-Control: max-age=3600 | Cache-Control: max-age=1
    kept [freshness-s-maxage-shared] | Cache-Control: s-maxage=3600
    kept | Cache-Control: max-age=0, s-maxage=3600
    asked | Cache-Control: max-age=3600, s-maxage=0
    asked | Cache-Control: s-maxage=0, max-age=3600
    asked | Cache-Control: max-age=3600 | Cache-Control: s-maxage=0
    asked [cc-resp-no-store] | Cache-Control: no-store
    asked [cc-resp-no-store-case-insensitive] | Cache-Control: No-StOrE
    asked | Cache-Control: no-store, max-age=3600 | ETag: "abcd"
    asked | Cache-Control: max-age=3600 | Cache-Control: no-store | ETag: "abcd"
    asked | Cache-Control: other="never ends, no-store, max-age=3600 | ETag: "abcd"
    asked | Cache-Control: other="never ends | Cache-Control: no-store, max-age=3600
    kept | Cache-Control: other="no-store", max-age=3600
    kept | Cache-Control: no-store, must-understand, max-age=3600
    asked [cc-resp-private-shared] | Cache-Control: private, max-age=3600 | ETag: "abcd"
    asked | Cache-Control: private="x-a", max-age=3600 | ETag: "abcd"
    asked | Cache-Control: private, must-understand, max-age=3600 | ETag: "abcd"
    asked | Cache-Control: no-cache, max-age=3600
    validated | Cache-Control: No-CaChE, max-age=3600 | ETag: "abcd"
    validated | Cache-Control: no-cache="x-a, x-b", max-age=3600 | ETag: "abcd"
    kept | Cache-Control: max-age=3600, must-revalidate | ETag: "abcd"
    validated | Cache-Control: max-age=0, must-revalidate | ETag: "abcd"
    validated | Cache-Control: max-age=0, immutable | ETag: "abcd"
    asked [freshness-max-age-age] | Cache-Control: max-age=3600 | Age: 7200
    asked [age-parse-suffix] | Cache-Control: max-age=3600 | Age: 7200, 0
    kept [age-parse-prefix] | Cache-Control: max-age=3600 | Age: 0, 7200
    kept [age-parse-prefix-twoline] | Cache-Control: max-age=3600 | Age: 0 | Age: 7200
    asked [age-parse-suffix-twoline] | Cache-Control: max-age=3600 | Age: 7200 | Age: 0
    asked [age-parse-large] | Cache-Control: max-age=3600 | Age: 2147483648
    asked | Cache-Control: max-age=3600 | Age: 99999999999
    kept [age-parse-nonnumeric] | Cache-Control: max-age=3600 | Age: abc
    kept [age-parse-negative] | Cache-Control: max-age=3600 | Age: -7200
    kept [age-parse-float] | Cache-Control: max-age=3600 | Age: 7200.0
    kept | Cache-Control: max-age=3600 | Set-Cookie: a=b
    kept | Cache-Control: max-age=3600 | Pragma: no-cache
    asked [vary-syntax-star] | Cache-Control: max-age=3600 | Vary: *
    asked [vary-syntax-star-star] | Cache-Control: max-age=3600 | Vary: *, *
    asked [vary-syntax-star-star-lines] | Cache-Control: max-age=3600 | Vary: * | Vary: *
    asked [vary-syntax-empty-star] | Cache-Control: max-age=3600 | Vary: , *
    asked [vary-syntax-empty-star-lines] | Cache-Control: max-age=3600 | Vary: | Vary: *
    asked [vary-syntax-foo-star] | Cache-Control: max-age=3600 | Vary: Foo, *
    asked [vary-syntax-star-foo] | Cache-Control: max-age=3600 | Vary: *, Foo
    kept | Cache-Control: max-age=3600 | Vary: Foo
    asked [age-parse-large-minus-one] | Cache-Control: max-age=3600 | Age: 2147483647
    asked [age-parse-larger] | Cache-Control: max-age=3600 | Age: 2147483649
    kept [age-parse-dup-0] | Cache-Control: max-age=3600 | Age: 0, 0
    kept [age-parse-dup-0-twoline] | Cache-Control: max-age=3600 | Age: 0 | Age: 0
    kept [age-parse-dup-old] | Cache-Control: max-age=10000 | Age: 3600 | Age: 3600
    validated [stale-while-revalidate-window] \
      | Cache-Control: max-age=100, stale-while-revalidate=100 | Age: 500 | ETag: "abcd"
    """)

  /// `Expires`, `Date` and `Last-Modified`.
  static var dates: [Case] {
    let now = date(0)
    let future = date(10_000)
    let past = date(-10_000)
    return rows(
      """
      kept | Expires: \(future) | Date: \(now)
      kept | Expires: \(future)
      asked [freshness-expires-past] | Expires: \(past) | Date: \(now)
      asked | Expires: 0
      asked [freshness-expires-present] | Expires: \(now) | Date: \(now)
      validated | Expires: soon | ETag: "abcd"
      asked [freshness-max-age-0-expires] | Expires: \(future) | Cache-Control: max-age=0
      kept | Expires: \(past) | Cache-Control: max-age=3600
      kept | Expires: 0 | Cache-Control: s-maxage=3600
      asked | Expires: \(date(3_600)) | Date: \(date(3_600))
      asked | Expires: \(future) | Date: \(now) | Age: 20000
      # RFC 850's form, and asctime's.
      kept | Expires: Thursday, 18-Aug-50 02:01:18 GMT
      kept | Expires: Thu Aug 18 02:01:18 2050
      kept | Expires: Mon Aug  1 02:01:18 2050
      # An invalid date counts as past, even if it resembles a valid one (section 5.3).
      asked [freshness-expires-invalid-utc] | Expires: Thu, 18 Aug 2050 02:01:18 UTC
      asked [freshness-expires-invalid-no-comma] | Expires: Thu 18 Aug 2050 02:01:18 GMT
      asked [freshness-expires-invalid-multiple-spaces] | Expires: Thu, 18  Aug  2050 02:01:18 GMT
      asked [freshness-expires-invalid-date-dashes] | Expires: Thu, 18-Aug-2050 02:01:18 GMT
      asked [freshness-expires-invalid-2-digit-year] | Expires: Thu, 18 Aug 50 02:01:18 GMT
      asked [freshness-expires-invalid-time-periods] | Expires: Thu, 18 Aug 2050 02.01.18 GMT
      asked [freshness-expires-invalid-1-digit-hour] | Expires: Thu, 18 Aug 2050 2:01:18 GMT
      asked | Expires: Thu, 18 AUG 2050 02:01:18 gmt
      asked | Expires: Thu,18 Aug 2050 02:01:18 GMT
      asked | Expires: 18 Aug 2050 02:01:18 GMT
      kept | Last-Modified: \(date(-100_000)) | Date: \(now)
      validated | Last-Modified: \(now) | Date: \(now)
      asked [freshness-expires-invalid-aest] | Expires: Thu, 18 Aug 2050 02:01:18 AEST
      asked [freshness-expires-invalid-multiple-lines] | Expires: Thu, 18 Aug 2050 2:01:18 GMT \
        | Expires: Thu, 18 Aug 2050 2:01:19 GMT
      asked [freshness-expires-invalid] | Expires: 0 | Date: \(now)
      asked [freshness-expires-old-date] | Expires: \(date(300)) | Date: \(date(400))
      asked [freshness-expires-age-slow-date] | Expires: \(date(10)) | Date: \(date(-10)) | Age: 25
      asked [freshness-expires-age-fast-date] | Expires: \(date(20)) | Date: \(date(10)) | Age: 15
      asked [cc-resp-no-store-fresh] | Cache-Control: max-age=10000, no-store \
        | Expires: \(future) | Date: \(now)
      asked [cc-resp-no-cache] | Cache-Control: max-age=10000, no-cache | Expires: \(future) \
        | Date: \(now)
      asked [cc-resp-no-cache-case-insensitive] | Cache-Control: max-age=10000, No-CaChE \
        | Expires: \(future) | Date: \(now)
      validated [vary-star] | Cache-Control: max-age=5000 | Last-Modified: \(date(-3_000)) \
        | Date: \(now) | Vary: *
      # Parsing is lenient where the RFC permits it: in comparisons and in sums for an age.
      kept | Cache-Control: max-age=3600 | Date: Thu 18 Aug 2050 02:01:18 UTC
      """)
  }

  /// Responses without an image: what needs revalidation, and what a negative cache may reuse.
  static let failures: [Case] =
    [404, 410].flatMap { status in
      [
        Case([], is: .kept, status: status),
        Case(["Cache-Control: max-age=3600"], is: .kept, status: status),
        Case(["Cache-Control: no-store"], is: .asked, status: status),
        Case(["Cache-Control: private, max-age=3600"], is: .asked, status: status),
        Case(["Cache-Control: no-cache"], is: .asked, status: status),
        Case(["Cache-Control: max-age=0"], is: .asked, status: status),
        Case(["Cache-Control: max-age=10", "Age: 20"], is: .asked, status: status),
        Case(["Cache-Control: max-age=3600, s-maxage=0"], is: .asked, status: status),
        Case(["Expires: 0"], is: .asked, status: status),
        Case(["Expires: Thu, 01 Dec 1994 16:00:00 GMT"], is: .asked, status: status),
        Case(["Cache-Control: max-age=3600", "Vary: *"], is: .asked, status: status),
      ]
    }
    + [204, 206, 299, 400, 403, 429, 451, 500, 502, 503, 504, 599].flatMap { status in
      [
        Case(["Cache-Control: max-age=3600"], is: .asked, status: status),
        Case(["Last-Modified: Thu, 01 Dec 1994 16:00:00 GMT"], is: .asked, status: status),
        Case(
          ["Cache-Control: max-age=3600, no-store, must-understand"], is: .asked, status: status),
      ]
    }

  /// Statuses that have no heuristic freshness (RFC 9110, section 15.1), and every status once its
  /// `Expires` has passed. The rows for redirects are in `CacheConformanceExchangeTests`.
  static var statuses: [Case] {
    [201, 202, 403, 502, 503, 504, 599].map { status in
      Case(
        ["Last-Modified: \(date(-86_400))", "Date: \(date(0))"],
        is: status == 201 ? .validated : .asked, status: status,
        id: "heuristic-\(status)-not_cached")
    }
      + [200, 203, 204, 299, 400, 404, 410, 499, 500, 502, 503, 504, 599].map { status in
        Case(
          [
            "Expires: \(date(-5_000))", "Last-Modified: \(date(-100_000))", "Date: \(date(0))",
          ], is: status == 200 || status == 203 ? .validated : .asked, status: status,
          id: "status-\(status)-stale")
      }
      + [
        Case(
          ["Cache-Control: max-age=3600, no-store, must-understand"], is: .asked, status: 599,
          id: "status-599-must-understand")
      ]
  }
}
