// FreshnessTests: Cache-Control, and the freshness that follows from them.

import Model
import Testing

@testable import Caching

struct FreshnessTests {
  static let now = UnixTime(seconds: 784_111_777)  // Sun, 06 Nov 1994 08:49:37 GMT

  @Test func `directives are read whatever their case, order and quoting`() {
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
    #expect(CacheControl("x, proxy-revalidate").mustRevalidate)
    #expect(CacheControl("Private=\"x\"").isPrivate)
    #expect(CacheControl("max-age=60, max-age=60").maxAge == 60)
    #expect(CacheControl("max-age=60, max-age=70").maxAge == 0)
    #expect(CacheControl("max-age").maxAge == 0)
    #expect(CacheControl("max-age=-5").maxAge == 0)
    #expect(CacheControl("max-age=1.5").maxAge == 0)
    #expect(CacheControl("max-age=99999999999999999999999").maxAge == 1 << 31)
    #expect(CacheControl("foo=\"never ends, max-age=3").maxAge == nil)
  }

  func freshness(_ change: (inout OriginResponse) -> Void) -> Freshness {
    var origin = OriginResponse(status: 200)
    change(&origin)
    return FreshnessRules().freshness(
      of: origin, from: SourceURL.sample, requestedAt: Self.now, receivedAt: Self.now)
  }

  @Test func `where the origin says nothing, it is fresh for a week`() {
    let freshness = freshness { _ in }
    #expect(freshness.lifetime == 604_800)
    #expect(freshness.initialAge == 0)
    #expect(freshness.isStorable)
  }

  @Test func `s-maxage goes before max-age, that before Expires, that before the default`() {
    let expires = "Sun, 06 Nov 1994 08:59:37 GMT"
    #expect(
      freshness {
        $0.cacheControl = "max-age=60, s-maxage=30"
        $0.expires = expires
      }.lifetime == 30)
    #expect(
      freshness {
        $0.cacheControl = "max-age=60"
        $0.expires = expires
      }.lifetime == 60)
    #expect(freshness { $0.expires = expires }.lifetime == 600)
    #expect(
      freshness {
        $0.expires = expires
        $0.date = "Sun, 06 Nov 1994 08:58:37 GMT"
      }.lifetime == 60)
  }

  @Test func `what cannot be read, has passed, or says no-cache is stale at once`() {
    #expect(freshness { $0.expires = "0" }.lifetime == 0)
    #expect(freshness { $0.expires = "Sun, 06 Nov 1994 08:49:36 GMT" }.lifetime == 0)
    #expect(freshness { $0.cacheControl = "no-cache, max-age=60" }.lifetime == 0)
    #expect(freshness { $0.cacheControl = "max-age=soon" }.lifetime == 0)
    #expect(!freshness { $0.cacheControl = "max-age=0" }.isFresh(at: Self.now))
  }

  @Test func `no-store and private are not to be kept`() {
    #expect(!freshness { $0.cacheControl = "no-store" }.isStorable)
    #expect(!freshness { $0.cacheControl = "max-age=60, private" }.isStorable)
    #expect(freshness { $0.cacheControl = "public, max-age=60" }.isStorable)
  }

  @Test(arguments: [
    "max-age=60, must-revalidate", "max-age=60, Proxy-Revalidate", "s-maxage=60",
    "max-age=60, no-cache", "no-cache=\"set-cookie\"",
  ])
  func `nobody gets it stale whose origin forbids it`(_ control: String) {
    // RFC 9111, section 4.2.4
    let freshness = freshness { $0.cacheControl = control }
    var demands = AgeDemands()
    demands.maxStale = .max
    #expect(!freshness.satisfies(demands, at: UnixTime(seconds: Self.now.seconds + 61)))
    #expect(
      freshness.satisfies(demands, at: Self.now) == freshness.isFresh(at: Self.now))
  }

  @Test func `who takes it stale gets it stale where the origin says nothing against it`() {
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

  @Test func `age is what Age says or Date shows, whichever is more`() {
    #expect(freshness { $0.age = "100" }.initialAge == 100)
    #expect(freshness { $0.age = "100, 200" }.initialAge == 100)
    #expect(freshness { $0.age = "-3" }.initialAge == 0)
    #expect(freshness { $0.date = "Sun, 06 Nov 1994 08:48:37 GMT" }.initialAge == 60)
    #expect(freshness { $0.date = "Sun, 06 Nov 1994 08:50:37 GMT" }.initialAge == 0)
    #expect(
      freshness {
        $0.age = "10"
        $0.date = "Sun, 06 Nov 1994 08:48:37 GMT"
      }.initialAge == 60)
  }
}

extension SourceURL {
  fileprivate static let sample: SourceURL = {
    do throws(ImageError) {
      return try SourceURL(parsing: "https://pictures.example/a.jpg")
    } catch {
      fatalError("\(error)")
    }
  }()
}
