// CacheConformanceTests+Rows: kinds of responses, and each one's effect on a second request.

import Model

extension CacheConformanceTests {
  static func date(_ seconds: Int) -> String {
    HTTPDate.text(of: UnixTime(seconds: UnixTime.now.seconds + seconds))
  }

  static let tag = "ETag: \"abcd\""

  /// `Cache-Control` and `Age`.
  static let directives: [Case] = [
    Case([], is: .asked), Case([tag], is: .validated),
    Case(["Cache-Control: max-age=3600"], is: .kept),
    Case(["Cache-Control: MaX-aGe=3600"], is: .kept),
    Case(["Cache-Control: max-age=003600"], is: .kept, id: "freshness-max-age-leading-zero"),
    Case(["Cache-Control: max-age=\"3600\""], is: .kept),
    Case(["Cache-Control: max-age='3600'"], is: .asked, id: "freshness-max-age-single-quoted"),
    Case(["Cache-Control: max-age=0"], is: .asked, id: "freshness-max-age-0"),
    Case(["Cache-Control: max-age=-3600"], is: .asked, id: "freshness-max-age-negative"),
    Case(["Cache-Control: max-age=a36"], is: .asked),
    Case(["Cache-Control: max-age=36a"], is: .asked),
    Case(["Cache-Control: max-age=36.5"], is: .asked),
    Case(["Cache-Control: max-age"], is: .asked),
    Case(["Cache-Control: max-age=2147483648"], is: .kept),
    Case(["Cache-Control: max-age=99999999999"], is: .kept),
    Case(["Cache-Control: foobar, max-age=3600"], is: .kept),
    Case(["Cache-Control: foobar=baz, max-age=3600"], is: .kept),
    Case(["Cache-Control: other=\"max-age=3600\", max-age=0"], is: .asked),
    Case(["Cache-Control: max-age=0, other=\"max-age=3600\""], is: .asked),
    Case(["Cache-Control: max-age=3600, max-age=1"], is: .asked),
    Case(["Cache-Control: max-age=3600", "Cache-Control: max-age=1"], is: .asked),
    Case(["Cache-Control: s-maxage=3600"], is: .kept, id: "freshness-s-maxage-shared"),
    Case(["Cache-Control: max-age=0, s-maxage=3600"], is: .kept),
    Case(["Cache-Control: max-age=3600, s-maxage=0"], is: .asked),
    Case(["Cache-Control: s-maxage=0, max-age=3600"], is: .asked),
    Case(["Cache-Control: max-age=3600", "Cache-Control: s-maxage=0"], is: .asked),
    Case(["Cache-Control: no-store"], is: .asked, id: "cc-resp-no-store"),
    Case(["Cache-Control: No-StOrE"], is: .asked, id: "cc-resp-no-store-case-insensitive"),
    Case(["Cache-Control: no-store, max-age=3600", tag], is: .asked),
    Case(["Cache-Control: max-age=3600", "Cache-Control: no-store", tag], is: .asked),
    Case(["Cache-Control: other=\"never ends, no-store, max-age=3600", tag], is: .asked),
    Case(
      ["Cache-Control: other=\"never ends", "Cache-Control: no-store, max-age=3600"], is: .asked),
    Case(["Cache-Control: other=\"no-store\", max-age=3600"], is: .kept),
    Case(["Cache-Control: no-store, must-understand, max-age=3600"], is: .kept),
    Case(["Cache-Control: private, max-age=3600", tag], is: .asked, id: "cc-resp-private-shared"),
    Case(["Cache-Control: private=\"x-a\", max-age=3600", tag], is: .asked),
    Case(["Cache-Control: private, must-understand, max-age=3600", tag], is: .asked),
    Case(["Cache-Control: no-cache, max-age=3600"], is: .asked),
    Case(["Cache-Control: No-CaChE, max-age=3600", tag], is: .validated),
    Case(["Cache-Control: no-cache=\"x-a, x-b\", max-age=3600", tag], is: .validated),
    Case(["Cache-Control: max-age=3600, must-revalidate", tag], is: .kept),
    Case(["Cache-Control: max-age=0, must-revalidate", tag], is: .validated),
    Case(["Cache-Control: max-age=0, immutable", tag], is: .validated),
    Case(["Cache-Control: max-age=3600", "Age: 7200"], is: .asked, id: "freshness-max-age-age"),
    Case(["Cache-Control: max-age=3600", "Age: 7200, 0"], is: .asked, id: "age-parse-suffix"),
    Case(["Cache-Control: max-age=3600", "Age: 0, 7200"], is: .kept, id: "age-parse-prefix"),
    Case(
      ["Cache-Control: max-age=3600", "Age: 0", "Age: 7200"], is: .kept,
      id: "age-parse-prefix-twoline"),
    Case(
      ["Cache-Control: max-age=3600", "Age: 7200", "Age: 0"], is: .asked,
      id: "age-parse-suffix-twoline"
    ),
    Case(["Cache-Control: max-age=3600", "Age: 2147483648"], is: .asked, id: "age-parse-large"),
    Case(["Cache-Control: max-age=3600", "Age: 99999999999"], is: .asked),
    Case(["Cache-Control: max-age=3600", "Age: abc"], is: .kept, id: "age-parse-nonnumeric"),
    Case(["Cache-Control: max-age=3600", "Age: -7200"], is: .kept, id: "age-parse-negative"),
    Case(["Cache-Control: max-age=3600", "Age: 7200.0"], is: .kept, id: "age-parse-float"),
    Case(["Cache-Control: max-age=3600", "Set-Cookie: a=b"], is: .kept),
    Case(["Cache-Control: max-age=3600", "Pragma: no-cache"], is: .kept),
    Case(["Cache-Control: max-age=3600", "Vary: *"], is: .asked, id: "vary-syntax-star"),
    Case(["Cache-Control: max-age=3600", "Vary: *, *"], is: .asked, id: "vary-syntax-star-star"),
    Case(
      ["Cache-Control: max-age=3600", "Vary: *", "Vary: *"], is: .asked,
      id: "vary-syntax-star-star-lines"),
    Case(["Cache-Control: max-age=3600", "Vary: , *"], is: .asked, id: "vary-syntax-empty-star"),
    Case(
      ["Cache-Control: max-age=3600", "Vary:", "Vary: *"], is: .asked,
      id: "vary-syntax-empty-star-lines"),
    Case(["Cache-Control: max-age=3600", "Vary: Foo, *"], is: .asked, id: "vary-syntax-foo-star"),
    Case(["Cache-Control: max-age=3600", "Vary: *, Foo"], is: .asked, id: "vary-syntax-star-foo"),
    Case(["Cache-Control: max-age=3600", "Vary: Foo"], is: .kept),
    Case(
      ["Cache-Control: max-age=3600", "Age: 2147483647"], is: .asked,
      id: "age-parse-large-minus-one"),
    Case(["Cache-Control: max-age=3600", "Age: 2147483649"], is: .asked, id: "age-parse-larger"),
    Case(["Cache-Control: max-age=3600", "Age: 0, 0"], is: .kept, id: "age-parse-dup-0"),
    Case(
      ["Cache-Control: max-age=3600", "Age: 0", "Age: 0"], is: .kept, id: "age-parse-dup-0-twoline"),
    Case(
      ["Cache-Control: max-age=10000", "Age: 3600", "Age: 3600"], is: .kept, id: "age-parse-dup-old"
    ),
    Case(
      ["Cache-Control: max-age=100, stale-while-revalidate=100", "Age: 500", tag], is: .validated,
      id: "stale-while-revalidate-window"),
  ]

  /// `Expires`, `Date` and `Last-Modified`.
  static var dates: [Case] {
    let now = date(0)
    let future = date(10_000)
    let past = date(-10_000)
    return [
      Case(["Expires: \(future)", "Date: \(now)"], is: .kept),
      Case(["Expires: \(future)"], is: .kept),
      Case(["Expires: \(past)", "Date: \(now)"], is: .asked, id: "freshness-expires-past"),
      Case(["Expires: 0"], is: .asked),
      Case(["Expires: \(now)", "Date: \(now)"], is: .asked, id: "freshness-expires-present"),
      Case(["Expires: soon", tag], is: .validated),
      Case(
        ["Expires: \(future)", "Cache-Control: max-age=0"], is: .asked,
        id: "freshness-max-age-0-expires"),
      Case(["Expires: \(past)", "Cache-Control: max-age=3600"], is: .kept),
      Case(["Expires: 0", "Cache-Control: s-maxage=3600"], is: .kept),
      Case(["Expires: \(date(3_600))", "Date: \(date(3_600))"], is: .asked),
      Case(["Expires: \(future)", "Date: \(now)", "Age: 20000"], is: .asked),
      // RFC 850's form, and asctime's.
      Case(["Expires: Thursday, 18-Aug-50 02:01:18 GMT"], is: .kept),
      Case(["Expires: Thu Aug 18 02:01:18 2050"], is: .kept),
      Case(["Expires: Mon Aug  1 02:01:18 2050"], is: .kept),
      // An invalid date counts as past, even if it resembles a valid one (section 5.3).
      Case(
        ["Expires: Thu, 18 Aug 2050 02:01:18 UTC"], is: .asked, id: "freshness-expires-invalid-utc"),
      Case(
        ["Expires: Thu 18 Aug 2050 02:01:18 GMT"], is: .asked,
        id: "freshness-expires-invalid-no-comma"),
      Case(
        ["Expires: Thu, 18  Aug  2050 02:01:18 GMT"], is: .asked,
        id: "freshness-expires-invalid-multiple-spaces"),
      Case(
        ["Expires: Thu, 18-Aug-2050 02:01:18 GMT"], is: .asked,
        id: "freshness-expires-invalid-date-dashes"),
      Case(
        ["Expires: Thu, 18 Aug 50 02:01:18 GMT"], is: .asked,
        id: "freshness-expires-invalid-2-digit-year"),
      Case(
        ["Expires: Thu, 18 Aug 2050 02.01.18 GMT"], is: .asked,
        id: "freshness-expires-invalid-time-periods"),
      Case(
        ["Expires: Thu, 18 Aug 2050 2:01:18 GMT"], is: .asked,
        id: "freshness-expires-invalid-1-digit-hour"),
      Case(["Expires: Thu, 18 AUG 2050 02:01:18 gmt"], is: .asked),
      Case(["Expires: Thu,18 Aug 2050 02:01:18 GMT"], is: .asked),
      Case(["Expires: 18 Aug 2050 02:01:18 GMT"], is: .asked),
      Case(["Last-Modified: \(date(-100_000))", "Date: \(now)"], is: .kept),
      Case(["Last-Modified: \(now)", "Date: \(now)"], is: .validated),
      Case(
        ["Expires: Thu, 18 Aug 2050 02:01:18 AEST"], is: .asked,
        id: "freshness-expires-invalid-aest"),
      Case(
        ["Expires: Thu, 18 Aug 2050 2:01:18 GMT", "Expires: Thu, 18 Aug 2050 2:01:19 GMT"],
        is: .asked,
        id: "freshness-expires-invalid-multiple-lines"),
      Case(["Expires: 0", "Date: \(now)"], is: .asked, id: "freshness-expires-invalid"),
      Case(
        ["Expires: \(date(300))", "Date: \(date(400))"], is: .asked,
        id: "freshness-expires-old-date"),
      Case(
        ["Expires: \(date(10))", "Date: \(date(-10))", "Age: 25"], is: .asked,
        id: "freshness-expires-age-slow-date"),
      Case(
        ["Expires: \(date(20))", "Date: \(date(10))", "Age: 15"], is: .asked,
        id: "freshness-expires-age-fast-date"),
      Case(
        ["Cache-Control: max-age=10000, no-store", "Expires: \(future)", "Date: \(now)"],
        is: .asked,
        id: "cc-resp-no-store-fresh"),
      Case(
        ["Cache-Control: max-age=10000, no-cache", "Expires: \(future)", "Date: \(now)"],
        is: .asked,
        id: "cc-resp-no-cache"),
      Case(
        ["Cache-Control: max-age=10000, No-CaChE", "Expires: \(future)", "Date: \(now)"],
        is: .asked,
        id: "cc-resp-no-cache-case-insensitive"),
      Case(
        [
          "Cache-Control: max-age=5000", "Last-Modified: \(date(-3_000))", "Date: \(now)",
          "Vary: *",
        ], is: .validated, id: "vary-star"),
      // Parsing is lenient where the RFC permits it: in comparisons and in sums for an age.
      Case(["Cache-Control: max-age=3600", "Date: Thu 18 Aug 2050 02:01:18 UTC"], is: .kept),
    ]
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
