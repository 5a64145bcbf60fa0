// RequestCacheControlTests: tests of the request fields Cache-Control and Priority.

import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct RequestCacheControlTests {
  private func options(
    _ cacheControl: String, of options: LoadOptions = LoadOptions(),
    rights: Set<ClientOption> = .all
  ) -> LoadOptions {
    var directives = RequestCacheControl()
    directives.read(cacheControl: cacheControl)
    var options = options
    directives.apply(to: &options, rights: rights)
    return options
  }

  @Test(arguments: [
    ("no-cache", CacheUse.refresh), ("No-Cache", .refresh), ("only-if-cached", .only),
    ("no-cache, only-if-cached", .only), ("max-age=0", .normal), ("private", .normal),
    ("", .normal), (",,", .normal), ("=", .normal), ("no-cachet", .normal),
    ("x=\"a, no-cache\"", .normal), ("\"no-cache\"", .normal), ("x=\"a, no-cache", .refresh),
  ])
  func `Cache-Control directives select the cache use`(text: String, use: CacheUse) {
    #expect(options(text).cache == use)
  }

  @Test func `demands on age are parsed as seconds`() {
    let age = options("max-age=5, min-fresh=\"7\" ,max-stale=9").age
    #expect((age.maxAge, age.minFresh, age.maxStale) == (5, 7, 9))
    #expect(options("max-stale").age.maxStale == .max)
    #expect(options("max-stale=").age.maxStale == .max)
    #expect(options("max-stale=\"\"").age.maxStale == AgeDemands().maxStale)
    #expect(options("max-age=99999999999999999999").age.maxAge == .max)
    let none = options("max-age=-1, min-fresh=x, max-stale=1.5").age
    #expect(none == AgeDemands())
  }

  @Test func `no-store stores the response in no tier, if the client may choose tiers`() {
    #expect(options("no-store").store == [])
    #expect(options("no-store", rights: .all.subtracting([.store])).store == .all)
  }

  @Test func `parameters take precedence over request headers`() {
    var target = LoadOptions()
    target.cache = .only
    target.priority = .low
    var directives = RequestCacheControl()
    directives.read(cacheControl: "no-cache, max-age=0")
    directives.read(priority: "u=0")
    directives.apply(to: &target, rights: .all)
    #expect((target.cache, target.priority, target.age) == (.only, .low, AgeDemands()))
  }

  @Test func `without permission to reload, reload directives are ignored`() {
    let options = options("no-cache, max-age=0, min-fresh=9, max-stale=4", rights: [.store])
    #expect(options.cache == .normal)
    #expect((options.age.maxAge, options.age.minFresh, options.age.maxStale) == (nil, nil, 4))
    #expect(self.options("only-if-cached", rights: []).cache == .only)
  }

  @Test(arguments: [
    ("u=0", LoadPriority.high), ("u=2, i", .high), ("u=3", .normal), ("i, u=4", .low),
    ("u=7", .low), ("u=8", .normal), ("u=x", .normal), ("i", .normal), ("", .normal),
  ])
  func `the urgency of a request selects its priority`(text: String, priority: LoadPriority) {
    var directives = RequestCacheControl()
    directives.read(priority: text)
    var options = LoadOptions()
    directives.apply(to: &options, rights: .all)
    #expect(options.priority == priority)
    // Without permission, an urgency above normal is ignored, and one below is not.
    var others = LoadOptions()
    directives.apply(to: &others, rights: .all.subtracting([.priority]))
    #expect(others.priority == min(priority, .normal))
  }

  @Test func `request headers reach the load and bypass memory where they must`() async throws {
    let provider = TestProvider.making([1])
    provider.keep(makeVariant(try makeRequest().key))
    try await withClient(provider) { client throws in
      #expect(try client.get(imageTarget, headers: ["Priority": "u=0"]).body.count == 18_000)
      #expect(
        try client.get(imageTarget, headers: ["Cache-Control": "no-cache", "Priority": "u=6"])
          .body == [1])
      #expect(try client.get(imageTarget + "&refresh=1&detach=1").body == [1])
      let options = provider.requests.withLock { $0.map(\.options) }
      #expect(options.map(\.cache) == [.refresh, .refresh])
      #expect(options.map(\.priority) == [.low, .normal])
      #expect(options.map(\.isDetached) == [false, true])
    }
  }

  @Test func `repeated header lines form one list`() async throws {
    let provider = TestProvider.making([1])
    try await withClient(provider, configure: { $0.allow = .all }) { client throws in
      let header: KeyValuePairs = [
        "Cache-Control": "max-age=5", "Priority": "i", "cache-control": "no-store",
        "priority": "u=0", "CACHE-CONTROL": "no-cache",
      ]
      #expect(try client.get(imageTarget, headers: header).status == 200)
      let options = provider.requests.withLock { $0.map(\.options) }
      #expect(options.map(\.cache) == [.refresh])
      #expect(options.map(\.age.maxAge) == [5])
      #expect(options.map(\.store) == [[]])
      #expect(options.map(\.priority) == [.high])
    }
  }

  @Test(arguments: ClientOption.allCases)
  func `an option that server.allow leaves out is refused as a parameter and ignored as a header`(
    option: ClientOption
  ) async throws {
    let provider = TestProvider.making([1])
    let parameters: [ClientOption: String] = [
      .refresh: "refresh=1", .bypass: "cache=bypass", .retry: "retry=1", .detach: "detach=1",
      .store: "store=disk", .priority: "priority=high",
    ]
    let left = Set<ClientOption>.all.subtracting([option])
    try await withClient(provider, configure: { $0.allow = left }) { client in
      for (other, parameter) in parameters {
        let answer = try client.get(imageTarget + "&" + parameter)
        guard other == option else {
          #expect(answer.status == 200, "\(parameter)")
          continue
        }
        #expect(answer.status == 403)
        #expect(answer.text.contains("\"code\":\"forbidden_parameter\""))
        let name = parameter.prefix { $0 != "=" }
        #expect(answer.text.contains("\"parameter\":\"\(name)\""))
      }
      for harmless in ["cache=only", "store=all", "priority=low", "priority=normal"] {
        #expect(try client.get(imageTarget + "&" + harmless).status == 200, "\(harmless)")
      }
      let headers: KeyValuePairs = ["Cache-Control": "no-cache, no-store", "Priority": "u=0"]
      #expect(try client.get(imageTarget, headers: headers).status == 200)
      let options = try #require(provider.requests.withLock { $0.last }).options
      #expect((options.cache == .refresh) == left.contains(.refresh))
      #expect((options.store == []) == left.contains(.store))
      #expect((options.priority == .high) == left.contains(.priority))
    }
  }
}
