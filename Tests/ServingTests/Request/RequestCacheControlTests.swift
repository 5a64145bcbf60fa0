// RequestCacheControlTests: tests of the request fields Cache-Control and Priority.

import Model
import Platform
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestCacheControlTests {
  private func options(
    _ cacheControl: String, of options: LoadOptions = LoadOptions(), mayReload: Bool = true
  ) -> LoadOptions {
    var directives = RequestCacheControl()
    directives.read(cacheControl: cacheControl)
    var options = options
    directives.apply(to: &options, mayReload: mayReload)
    return options
  }

  @Test(arguments: [
    ("no-cache", CacheUse.refresh), ("No-Cache", .refresh), ("only-if-cached", .only),
    ("no-cache, only-if-cached", .only), ("max-age=0", .normal), ("private", .normal),
    ("", .normal), (",,", .normal), ("=", .normal), ("no-cachet", .normal),
    ("x=\"a, no-cache\"", .normal), ("\"no-cache\"", .normal), ("x=\"a, no-cache", .refresh),
  ])
  func `what a request may be answered with is its directives'`(text: String, use: CacheUse) {
    #expect(options(text).cache == use)
  }

  @Test func `demands on age are read in seconds`() {
    let age = options("max-age=5, min-fresh=\"7\" ,max-stale=9").age
    #expect((age.maxAge, age.minFresh, age.maxStale) == (5, 7, 9))
    #expect(options("max-stale").age.maxStale == .max)
    #expect(options("max-stale=").age.maxStale == .max)
    #expect(options("max-stale=\"\"").age.maxStale == AgeDemands().maxStale)
    #expect(options("max-age=99999999999999999999").age.maxAge == .max)
    let none = options("max-age=-1, min-fresh=x, max-stale=1.5").age
    #expect(none == AgeDemands())
  }

  @Test func `no-store keeps the answer nowhere`() {
    #expect(options("no-store").store == [])
  }

  @Test func `the target goes before the header`() {
    var target = LoadOptions()
    target.cache = .only
    target.priority = .low
    var directives = RequestCacheControl()
    directives.read(cacheControl: "no-cache, max-age=0")
    directives.read(priority: "u=0")
    directives.apply(to: &target, mayReload: true)
    #expect((target.cache, target.priority, target.age) == (.only, .low, AgeDemands()))
  }

  @Test func `where clients may not reload, what would make them is passed over`() {
    let options = options("no-cache, max-age=0, min-fresh=9, max-stale=4", mayReload: false)
    #expect(options.cache == .normal)
    #expect((options.age.maxAge, options.age.minFresh, options.age.maxStale) == (nil, nil, 4))
    #expect(self.options("only-if-cached", mayReload: false).cache == .only)
  }

  @Test(arguments: [
    ("u=0", LoadPriority.high), ("u=2, i", .high), ("u=3", .normal), ("i, u=4", .low),
    ("u=7", .low), ("u=8", .normal), ("u=x", .normal), ("i", .normal), ("", .normal),
  ])
  func `urgency is a priority`(text: String, priority: LoadPriority) {
    var directives = RequestCacheControl()
    directives.read(priority: text)
    var options = LoadOptions()
    directives.apply(to: &options, mayReload: true)
    #expect(options.priority == priority)
  }

  @Test func `the request's fields reach its load, past what memory holds`() async throws {
    let seen = Lock<[LoadOptions]>([])
    let provider = TestProvider { request throws(ImageError) in
      seen.withLock { $0.append(request.options) }
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    provider.keep(makeVariant(try makeRequest().key))
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      #expect(try client.get(imageTarget, headers: ["Priority": "u=0"]).body.count == 18_000)
      #expect(
        try client.get(imageTarget, headers: ["Cache-Control": "no-cache", "Priority": "u=6"])
          .body == [1])
      #expect(try client.get(imageTarget + "&refresh=1&detach=1").body == [1])
      let options = seen.withLock { $0 }
      #expect(options.map(\.cache) == [.refresh, .refresh])
      #expect(options.map(\.priority) == [.low, .normal])
      #expect(options.map(\.isDetached) == [false, true])
    }
  }

  @Test func `the lines of a field are one list`() async throws {
    let seen = Lock<[LoadOptions]>([])
    let provider = TestProvider { request throws(ImageError) in
      seen.withLock { $0.append(request.options) }
      return makeDelivery(makeVariant(request.key, body: [1]))
    }
    try await withServer(provider) { server in
      let client = try HTTPClient(port: server.port)
      let header: KeyValuePairs = [
        "Cache-Control": "max-age=5", "Priority": "i", "cache-control": "no-store",
        "priority": "u=0", "CACHE-CONTROL": "no-cache",
      ]
      #expect(try client.get(imageTarget, headers: header).status == 200)
      let options = seen.withLock { $0 }
      #expect(options.map(\.cache) == [.refresh])
      #expect(options.map(\.age.maxAge) == [5])
      #expect(options.map(\.store) == [[]])
      #expect(options.map(\.priority) == [.high])
    }
  }

  @Test func `where reloading is forbidden the parameters are refused and the directive ignored`()
    async throws
  {
    let provider = TestProvider { request throws(ImageError) in
      makeDelivery(makeVariant(request.key, body: [1]))
    }
    try await withServer(provider, configure: { $0.allowsReload = false }) { server in
      let client = try HTTPClient(port: server.port)
      for parameter in ["refresh=1", "cache=bypass", "retry=1"] {
        let answer = try client.get(imageTarget + "&" + parameter)
        #expect(answer.status == 403)
        #expect(answer.text.contains("\"code\":\"forbidden_parameter\""))
        let name = parameter.prefix { $0 != "=" }
        #expect(answer.text.contains("\"parameter\":\"\(name)\""))
      }
      #expect(try client.get(imageTarget + "&cache=only").status == 200)
      #expect(try client.get(imageTarget, headers: ["Cache-Control": "no-cache"]).status == 200)
    }
  }
}
