// FreshnessTests: Cache-Control and the freshness derived from it.

@testable import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct FreshnessTests {
  let url: SourceURL

  init() throws { url = try SourceURL(parsing: "https://images.example/a.jpg") }

  static let now = UnixTime(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

  @Test func `directives are parsed regardless of case, order and quoting`() {
    var wanted = CacheControl()
    wanted.maxAge = 60
    wanted.sharedMaxAge = 120
    wanted.noCache = true
    #expect(CacheControl("MAX-AGE=60, no-cache=\"set-cookie, x\" ,S-MaxAge=\"120\"") == wanted)
    #expect(CacheControl(",, max-age = 60 ;x,") != wanted)
    #expect(CacheControl("foo=\"no-store, private\", bar, =, \"no-store\"") == CacheControl())
    #expect(CacheControl("foo=\"\\\", no-store\"") == CacheControl())
    #expect(CacheControl("no-store").noStore)
    #expect(CacheControl("Must-Revalidate").mustRevalidate)
    #expect(CacheControl("x, proxy-revalidate").proxyRevalidate)
    #expect(CacheControl("Private=\"x\"").isPrivate)
    #expect(CacheControl("max-age=60, max-age=60").maxAge == 60)
    #expect(CacheControl("max-age=60, max-age=70").maxAge == 0)
    #expect(CacheControl("max-age").maxAge == 0)
    #expect(CacheControl("max-age=-5").maxAge == 0)
    #expect(CacheControl("max-age=1.5").maxAge == 0)
    #expect(CacheControl("max-age=99999999999999999999999").maxAge == 1 << 31)
    #expect(CacheControl("foo=\"never ends, max-age=3").maxAge == 3)
    #expect(CacheControl("foo=\"never ends, no-store").forbidsStoring)
    #expect(CacheControl("max-age=\"60, no-store").maxAge == 0)
  }

  func freshness(
    _ configuration: FreshnessConfiguration = FreshnessConfiguration(), delay: Int = 0,
    from url: SourceURL? = nil, isAuthorized: Bool = false, change: (inout OriginResponse) -> Void
  ) -> Freshness {
    var origin = OriginResponse(status: 200)
    let moment = Moment(Self.now)
    origin.exchange = Exchange(
      requestedAt: moment.instant - .seconds(delay), receivedAt: moment.instant)
    change(&origin)
    return FreshnessRules(configuration).freshness(
      of: origin, from: url ?? self.url, isAuthorized: isAuthorized, at: moment)
  }

  @Test func `without freshness headers, a response is fresh for a week`() {
    let freshness = freshness { _ in }
    #expect(freshness.lifetime == 604_800)
    #expect(freshness.initialAge == 0)
    #expect(freshness.isStorable)
  }

  @Test(
    arguments: [
      // What this cache is told, what all are told, the lifetimes here and in clients.
      ("max-age=600", "max-age=60", 600, 60), ("max-age=600, s-maxage=900", "max-age=60", 900, 60),
      ("max-age=600", "no-store", 600, 0), ("max-age=600", "private", 600, 0),
      ("max-age=600", "no-cache", 600, 0), ("no-cache", "max-age=60", 0, 60),
      ("max-age=0", "max-age=60", 0, 60), ("stale-if-error=9", "max-age=60", 604_800, 60),
    ] as [(String, String, Int, Int)])
  func `directives for this cache count in place of those for all`(
    targeted: String, all: String, lifetime: Int, client: Int
  ) {
    let freshness = freshness {
      $0.targetedControl = targeted
      $0.cacheControl = all
      $0.expires = Self.later
    }
    #expect(freshness.lifetime == lifetime && freshness.isStorable)
    #expect(freshness.clientMaxAge(atAge: 0) == client)
    let refused = self.freshness {
      $0.targetedControl = "no-store"
      $0.cacheControl = all
    }
    #expect(!refused.isStorable)
  }

  /// The time, 10 minutes after it, 1 minute before that, 1 s and 2 hours before it.
  private static let (later, nearly) = (
    "Sun, 06 Nov 1994 08:59:37 GMT", "Sun, 06 Nov 1994 08:58:37 GMT"
  )
  private static let (past, hoursAgo) = (
    "Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 06:49:37 GMT"
  )

  @Test(
    arguments: [
      // s-maxage takes precedence over max-age, max-age over Expires, Expires over the default.
      ("max-age=60, s-maxage=30", later, nil, nil, 30), ("max-age=60", later, nil, nil, 60),
      (nil, later, nil, nil, 600), (nil, later, nearly, nil, 60),
      // What is unreadable, past or no-cache is stale at once.
      (nil, "0", nil, nil, 0), (nil, past, nil, nil, 0), ("no-cache, max-age=60", nil, nil, nil, 0),
      ("max-age=soon", nil, nil, nil, 0), ("max-age=0", nil, nil, nil, 0),
      // A tenth of the time since Last-Modified (RFC 9111, 4.2.2), by the origin's own Date, and
      // only without an explicit lifetime.
      (nil, nil, nil, hoursAgo, 720), (nil, nil, "Sun, 06 Nov 1994 07:49:37 GMT", hoursAgo, 360),
      (nil, nil, nil, "Thu, 01 Jan 1970 00:00:00 GMT", 604_800),
      (nil, nil, nil, "Sun, 06 Nov 1994 09:49:37 GMT", 0), (nil, nil, nil, "yesterday", 604_800),
      ("max-age=5", nil, nil, hoursAgo, 5),
    ] as [(String?, String?, String?, String?, Int)])
  func `the lifetime is the first that the origin states, or a tenth of the age`(
    control: String?, expires: String?, date: String?, lastModified: String?, lifetime: Int
  ) {
    let freshness = freshness {
      ($0.cacheControl, $0.expires, $0.date) = (control, expires, date)
      $0.lastModified = lastModified
    }
    #expect(freshness.lifetime == lifetime)
    if lifetime == 0 { #expect(!freshness.isFresh(at: Self.now)) }
  }

  @Test func `no-store and private forbid storing`() {
    #expect(!freshness { $0.cacheControl = "no-store" }.isStorable)
    #expect(!freshness { $0.cacheControl = "max-age=60, private" }.isStorable)
    #expect(freshness { $0.cacheControl = "public, max-age=60" }.isStorable)
  }

  @Test(arguments: [
    "max-age=60, must-revalidate", "max-age=60, Proxy-Revalidate", "s-maxage=60",
    "s-maxage=60, stale-while-revalidate=0", "s-maxage=60, stale-if-error=0",
    "s-maxage=60, stale-while-revalidate=0, stale-if-error=soon", "max-age=60, no-cache",
    "no-cache=\"set-cookie\"",
  ])
  func `a stale response is never used if the origin forbids it`(_ control: String) {
    // RFC 9111, section 4.2.4
    let freshness = freshness { $0.cacheControl = control }
    var demands = AgeDemands()
    demands.maxStale = .max
    #expect(!freshness.satisfies(demands, at: UnixTime(seconds: Self.now.seconds + 61)))
    #expect(
      freshness.satisfies(demands, at: Self.now) == freshness.isFresh(at: Self.now))
  }

  @Test func `max-stale allows a stale response unless the origin forbids it`() {
    var demands = AgeDemands()
    demands.maxStale = 10
    for control in [nil, "max-age=60", "public, max-age=60"] {
      let freshness = freshness {
        $0.cacheControl = control
        $0.expires = "Sun, 06 Nov 1994 08:50:37 GMT"
      }
      let end = Self.now.seconds + 60
      #expect(freshness.satisfies(demands, at: UnixTime(seconds: end + 10)))
      #expect(!freshness.satisfies(demands, at: UnixTime(seconds: end + 11)))
    }
  }

  @Test(
    arguments: [
      (0, "100", nil, 100), (0, "100, 200", nil, 100), (0, "-3", nil, 0),
      (0, nil, "Sun, 06 Nov 1994 08:48:37 GMT", 60), (0, nil, "Sun, 06 Nov 1994 08:50:37 GMT", 0),
      (0, "10", "Sun, 06 Nov 1994 08:48:37 GMT", 60),
      // The delay of the response counts (RFC 9111, 4.2.3), unless the clock was set back.
      (3, nil, nil, 3), (3, "100", nil, 103), (3, "10", "Sun, 06 Nov 1994 08:48:37 GMT", 60),
      (-50, "10", nil, 10),
    ] as [(Int, String?, String?, Int)])
  func `the initial age is the maximum of Age with the delay and the time since Date`(
    delay: Int, age: String?, date: String?, expected: Int
  ) {
    #expect(freshness(delay: delay) { ($0.age, $0.date) = (age, date) }.initialAge == expected)
  }
}

extension FreshnessTests {
  @Test(arguments: [
    // Cache-Control; stale-while-revalidate, stale-if-error.
    ("max-age=60", 10, 86_400), ("max-age=0", 0, 86_400),
    ("max-age=0, stale-while-revalidate=30", 30, 86_400),
    ("max-age=60, stale-while-revalidate=0, stale-if-error=5", 0, 5),
    ("max-age=60, Stale-If-Error=\"5\"", 10, 5),
    // RFC 5861, section 3: the value is a number of seconds.
    ("max-age=60, stale-while-revalidate=soon", 0, 86_400),
    // RFC 9111, section 4.2.4
    ("max-age=60, stale-while-revalidate=30, must-revalidate", 0, 0),
    ("max-age=60, stale-if-error=30, proxy-revalidate", 0, 0),
    ("s-maxage=60", 0, 0), ("no-cache, stale-if-error=30", 0, 0),
    // The origin states it for shared caches, as `s-maxage`.
    ("s-maxage=60, stale-while-revalidate=30", 30, 0), ("s-maxage=60, stale-if-error=30", 0, 30),
    ("s-maxage=60, stale-if-error=30, must-revalidate", 0, 0),
  ])
  func `stale-while-revalidate and stale-if-error follow RFC 5861`(
    _ control: String, whileRevalidate: Int, ifError: Int
  ) {
    let freshness = freshness { $0.cacheControl = control }
    #expect(freshness.staleWhileRevalidate == whileRevalidate)
    #expect(freshness.staleIfError == ifError)
  }

  @Test func `immutable is recognized, RFC 8246`() {
    #expect(freshness { $0.cacheControl = "max-age=60, Immutable" }.isImmutable)
    #expect(!freshness { $0.cacheControl = "max-age=60" }.isImmutable)
  }

  @Test func `lifetimes are clamped, also for no-cache, and unstorable responses stay unstorable`()
  {
    var configuration = FreshnessConfiguration()
    configuration.minimumLifetime = .seconds(100)
    configuration.maximumLifetime = .seconds(1_000)
    for (control, lifetime) in [
      ("max-age=5", 100), ("no-cache", 100), ("max-age=500", 500), ("max-age=5000", 1_000),
      ("s-maxage=5000", 1_000),
    ] {
      #expect(freshness(configuration) { $0.cacheControl = control }.lifetime == lifetime)
    }
    #expect(freshness(configuration) { _ in }.lifetime == 1_000)
    #expect(!freshness(configuration) { $0.cacheControl = "no-store" }.isStorable)
    #expect(!freshness(configuration) { $0.cacheControl = "private" }.isStorable)
    #expect(!freshness(configuration) { $0.cacheControl = "no-cache" }.mayBeStale)
  }

  @Test func `the first host rule that matches overrides freshness settings`() throws {
    var configuration = FreshnessConfiguration()
    var first = HostRule(host: try #require(HostPattern("*.example")))
    first.freshness.defaultLifetime = .seconds(50)
    first.freshness.staleIfError = .seconds(7)
    var second = HostRule(host: try #require(HostPattern("images.example")))
    second.freshness.defaultLifetime = .seconds(9)
    second.freshness.minimumLifetime = .seconds(9)
    configuration.hostRules = [first, second]
    let ruled = freshness(configuration) { _ in }
    #expect(ruled.lifetime == 50 && ruled.staleIfError == 7 && ruled.staleWhileRevalidate == 10)
    #expect(freshness(configuration) { $0.cacheControl = "max-age=1" }.lifetime == 1)
    let other = freshness(configuration, from: try SourceURL(parsing: "http://other/a")) { _ in }
    #expect(other.lifetime == 604_800 && other.staleIfError == 86_400)
  }

  @Test func `a local file has the freshness that its reader sets`() throws {
    var configuration = FreshnessConfiguration()
    configuration.minimumLifetime = .seconds(100)
    let local = freshness(configuration, from: try SourceURL(parsing: "local:///a.jpg")) {
      $0.cacheControl = "max-age=5"
    }
    #expect(local.lifetime == 5 && local.staleIfError == 0 && local.staleWhileRevalidate == 0)
  }

  @Test
  func `a response with an unsupported Vary is never reused without revalidation, RFC 9111 4.1`()
    throws
  {
    var configuration = FreshnessConfiguration()
    configuration.minimumLifetime = .seconds(50)
    var rule = HostRule(host: try #require(HostPattern("images.example")))
    rule.keepsCookies = true
    func isSelected(_ vary: String, cookies: Bool) -> Bool {
      configuration.hostRules = cookies ? [rule] : []
      let freshness = freshness(configuration) {
        $0.vary = vary
        $0.cacheControl = "max-age=60, stale-if-error=60"
      }
      #expect(freshness.isStorable)
      #expect((freshness.lifetime == 60) == freshness.mayBeStale)
      #expect((freshness.lifetime == 0) == (freshness.staleIfError == 0))
      return freshness.mayBeStale
    }
    #expect(!isSelected("*", cookies: false) && !isSelected("Accept, *", cookies: true))
    #expect(isSelected("Accept, Cookie, User-Agent", cookies: false))
    #expect(!isSelected("accept,\tcookie ", cookies: true))
    #expect(isSelected("Accept", cookies: true))
  }
}

extension FreshnessTests {
  @Test func `the rule of a lifetime is the field or the key that decides it`() throws {
    func rule(
      from url: String = "https://images.example/a.jpg", _ settings: FreshnessSettings = .init(),
      change: (inout OriginResponse) -> Void
    ) throws -> String {
      var origin = OriginResponse(status: 200)
      change(&origin)
      return FreshnessRules(FreshnessConfiguration(settings)).rule(
        of: origin, from: try SourceURL(parsing: url), at: Moment(Self.now))
    }
    #expect(try rule { $0.cacheControl = "max-age=9, s-maxage=3" }.hasPrefix("s-maxage (RFC 9111"))
    #expect(try rule { $0.cacheControl = "max-age=9" }.hasPrefix("max-age (RFC 9111"))
    #expect(try rule { $0.cacheControl = "no-cache, max-age=9" }.hasPrefix("no-cache"))
    #expect(try rule { $0.cacheControl = "no-store, max-age=9" }.hasPrefix("no-store"))
    #expect(try rule { $0.cacheControl = "private" }.hasPrefix("private"))
    #expect(try rule { $0.targetedControl = "max-age=9" }.contains("RFC 9213"))
    #expect(try rule { $0.expires = "Sun, 06 Nov 1994 09:49:37 GMT" }.hasPrefix("Expires"))
    let modified = "Sun, 06 Nov 1994 07:49:37 GMT"
    #expect(try rule { $0.lastModified = modified }.contains("section 4.2.2"))
    #expect(
      try rule {
        $0.vary = "*"
        $0.cacheControl = "max-age=9"
      }.hasPrefix("Vary"))
    #expect(try rule { _ in } == "freshness.default_lifetime")
    var bounds = FreshnessSettings()
    bounds.maximumLifetime = .seconds(5)
    #expect(try rule(bounds) { $0.cacheControl = "max-age=9" } == "freshness.maximum_lifetime")
    bounds.minimumLifetime = .seconds(5)
    #expect(try rule(bounds) { $0.cacheControl = "max-age=3" } == "freshness.minimum_lifetime")
    #expect(try rule(bounds) { $0.cacheControl = "max-age=5" }.hasPrefix("max-age"))
    let local = try rule(from: "local:///a.jpg") { $0.cacheControl = "max-age=9" }
    #expect(local == "sources.local_lifetime")
  }

  @Test func `each response of a redirect chain has the age of its own exchange`() {
    // Given a redirect of ten seconds, and a target of two that was received a second ago
    let moment = Moment(Self.now)
    func exchange(_ requested: Int, _ received: Int) -> Exchange {
      Exchange(
        requestedAt: moment.instant - .seconds(requested),
        receivedAt: moment.instant - .seconds(received))
    }
    func timeToLive(_ control: String?, target: String) -> Int {
      var redirect = OriginResponse(status: 302)
      redirect.cacheControl = control
      redirect.exchange = exchange(50, 40)
      var origin = OriginResponse(status: 200)
      origin.cacheControl = target
      origin.exchange = exchange(3, 1)
      origin.redirects = [redirect]
      return FreshnessRules().freshness(of: origin, from: url, isAuthorized: false, at: moment)
        .timeToLive(at: Self.now)
    }
    // Then the redirect does not age its target
    #expect(timeToLive(nil, target: "max-age=20") == 17)
    #expect(timeToLive("max-age=600", target: "max-age=20") == 17)
    // And it is as old as its own request
    #expect(timeToLive("max-age=60", target: "max-age=600") == 10)
  }

  @Test(arguments: [
    // Cache-Control of the redirects and of the target; stale-while-revalidate, stale-if-error.
    (["s-maxage=60"], "max-age=60", 0, 0), (["must-revalidate"], "max-age=60", 0, 0),
    (["max-age=60, proxy-revalidate"], "max-age=60", 0, 0),
    (["s-maxage=60, stale-if-error=30"], "max-age=60", 0, 30),
    (["s-maxage=60, stale-while-revalidate=5"], "max-age=60", 5, 0),
    (["s-maxage=60, stale-if-error=0"], "max-age=60", 0, 0),
    (["max-age=60", "s-maxage=60, stale-if-error=30"], "max-age=60, stale-if-error=9", 0, 9),
    (["max-age=60, stale-if-error=30"], "max-age=60, stale-if-error=90", 10, 30),
    (["s-maxage=60, stale-if-error=30"], "s-maxage=60, stale-while-revalidate=30", 0, 0),
    // A redirect that says nothing about staleness changes nothing.
    (["max-age=60"], "max-age=60", 10, 86_400), (["public"], "max-age=60", 10, 86_400),
    (["max-age=0"], "max-age=60", 0, 86_400),
  ])
  func `the strictest of all hops limits how stale a response may be`(
    _ redirects: [String], target: String, whileRevalidate: Int, ifError: Int
  ) {
    let freshness = freshness {
      $0.cacheControl = target
      $0.redirects = redirects.map { control in
        var redirect = OriginResponse(status: 302)
        redirect.cacheControl = control
        return redirect
      }
    }
    #expect(freshness.staleWhileRevalidate == whileRevalidate)
    #expect(freshness.staleIfError == ifError)
  }

  @Test(arguments: [
    ("max-age=60", false), ("max-age=60, proxy-revalidate", false),
    ("max-age=60, immutable, must-understand", false), ("max-age=60, must-revalidate", true),
    ("public", true), ("s-maxage=60", true), ("s-maxage=60, no-store", false),
    ("must-revalidate, private", false),
  ])
  func `a response to a request with credentials is stored as RFC 9111 permits, section 3.5`(
    _ control: String, isStorable: Bool
  ) {
    #expect(freshness(isAuthorized: true) { $0.cacheControl = control }.isStorable == isStorable)
    // The redirects of such a request, too.
    let redirected = freshness(isAuthorized: true) {
      $0.cacheControl = "public"
      var redirect = OriginResponse(status: 302)
      redirect.cacheControl = control
      $0.redirects = [redirect]
    }
    #expect(redirected.isStorable == isStorable)
  }

  @Test func `a redirect without directives permits no storing of a request with credentials`() {
    let silent = { (origin: inout OriginResponse) in
      origin.cacheControl = "public"
      origin.redirects = [OriginResponse(status: 302)]
    }
    #expect(!freshness(isAuthorized: true, change: silent).isStorable)
    #expect(freshness(change: silent).isStorable)
  }
}
