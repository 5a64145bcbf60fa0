// FreshnessTests+Redirects: what redirects, and credentials in their requests, permit.

import Model
import Testing

@testable import Caching

extension FreshnessTests {
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
