// PurgesTests: which keys and generations the list of purges covers, and for how long.

@testable import Core
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct PurgesTests {
  static let filter = CacheKeyFilter(
    rules: HostPattern("shop.example").map { [HostRule(host: $0, tags: ["shop", "all"])] } ?? [])

  static func scope(_ kind: String, value: String) throws -> PurgeScope {
    switch kind {
    case "url": .url(try SourceURL(parsing: value))
    case "prefix": .prefix(try SourceURL(parsing: value))
    case "host": .host(try #require(HostPattern(value)))
    case "tag": .tag(value)
    default: .everything
    }
  }

  @Test(arguments: [
    ("url", "https://shop.example/a/1.jpg", "1111000"),
    ("prefix", "https://shop.example/a/", "1111100"),
    ("host", "shop.example", "1111110"),
    ("host", "*.example", "1111111"),
    ("tag", "shop", "1111110"),
    ("tag", "none", "0000000"),
    ("everything", "", "1111111"),
  ])
  func `a purge covers its scope up to its generation`(
    kind: String, value: String, expected: String
  ) throws {
    let purges = Purges(filter: Self.filter)
    let before = purges.generation
    let purge = purges.add(try Self.scope(kind, value: value))
    let keys = [
      "https://shop.example/a/1.jpg", "https://shop.example/a/1.jpg w=1",
      "https://shop.example/a/1.jpg#ab", "https://shop.example/a/1.jpg#ab w=1",
      "https://shop.example/a/2.jpg w=1", "https://shop.example/b/1.jpg",
      "https://other.example/a/1.jpg",
    ].map { CacheKey(text: $0) }
    #expect(keys.map { purges.covers($0, generation: before) ? "1" : "0" }.joined() == expected)
    #expect(purge.number == purges.generation)
    for key in keys { #expect(!purges.covers(key, generation: purge.number)) }
  }

  @Test func `the look-up agrees with a walk over all purges`() throws {
    var rules = try [
      ("shop.example", ["shop", "all"]), ("*.shop.example", ["all"]), ("shop.example", ["none"]),
    ].map {
      HostRule(host: try #require(HostPattern($0.0)), tags: $0.1)
    }
    rules.append(HostRule(host: try #require(HostPattern("*")), tags: ["any"]))
    rules[3].store = ObjectStore()
    rules.append(HostRule(host: try #require(HostPattern("*.example")), tags: ["any"]))
    let filter = CacheKeyFilter(rules: rules)
    var scopes: [PurgeScope] = ["shop", "all", "none", "any"].map { .tag($0) } + [.everything]
    let hosts = [
      "shop.example", "a.shop.example", "example", "*.example", "*.shop.example", "*", "::1",
    ]
    scopes += hosts.compactMap { HostPattern($0) }.map { .host($0) }
    let names = [
      "shop.example", "a.shop.example", "a.shop.example.", "xshop.example:81", "[::1]:81",
    ]
    let urls =
      try names.flatMap { host in
        try ["", "a", "a/", "a/b", "ab", "a/b?c", "a/b?c=d", "?c"].map {
          try SourceURL(parsing: "http://\(host)/\($0)")
        }
      } + ["s3://shop.example/a", "local:///a"].map { try SourceURL(parsing: $0) }
    scopes += urls.flatMap { [.url($0), .prefix($0)] }
    let keys = urls.flatMap { url in
      ["", " w=1", "#ab w=1"].map { CacheKey(text: url.text + $0) }
    }
    for _ in 0..<64 {
      let purges = Purges(filter: filter)
      var added = scopes.shuffled().prefix(.random(in: 1...6)).map { purges.add($0) }[...]
      // Also after the first of them are dropped.
      while !added.isEmpty {
        for key in keys {
          let last = added.last { $0.scope.matches(key, filter: filter) }?.number ?? 0
          #expect(last == 0 || purges.covers(key, generation: last - 1))
          #expect(!purges.covers(key, generation: last))
        }
        added.popFirst().map { purges.finish($0) }
        purges.dropOld(at: .now + .seconds(100_000))
      }
    }
  }

  @Test func `purge numbers grow across runs, even if the clock is set back`()
    throws
  {
    let purges = Purges()
    let far = 8_000_000_000_000_000
    purges.restore([Purge(number: far, scope: .tag("a"))], last: far + 5)
    var last = purges.generation
    #expect(last == far + 5)
    for _ in 0..<100 {
      let number = purges.add(.everything).number
      #expect(number > last)
      last = number
    }
    // Microseconds since 1970, unless the list is ahead of the clock.
    let seconds = Purges().add(.everything).number / 1_000_000
    #expect(abs(seconds - UnixTime.now.seconds) < 3_600)
  }

  @Test func `a purge applies for as long as a load may be under way after it finished`()
    throws
  {
    let purges = Purges()
    let key = CacheKey(text: "https://a.example/1")
    let scopes = [PurgeScope.url(try SourceURL(parsing: key.text)), .everything]
    for scope in scopes {
      let purge = purges.add(scope)
      purges.dropOld(at: .now + .seconds(100_000))
      #expect(purges.covers(key, generation: 0), "not carried out")
      purges.finish(purge)
      #expect(purges.unfinishedCount == 0)
      // An origin may take an hour, and so may each of two workers.
      purges.dropOld(at: .now + .seconds(3 * 3_600))
      #expect(purges.covers(key, generation: 0))
      purges.dropOld(at: .now + Purges.longestLoad)
      #expect(!purges.covers(key, generation: 0))
    }
  }

  @Test func `among purges of one scope, the last stays when older ones are dropped`() throws {
    let purges = Purges()
    let key = CacheKey(text: "https://a.example/1")
    for scope in [PurgeScope.url(try SourceURL(parsing: key.text)), .tag("t"), .everything] {
      let first = purges.add(scope)
      let second = purges.add(scope)
      purges.finish(first)
      purges.dropOld(at: .now + Purges.longestLoad)
      #expect(purges.unfinished == [second])
      #expect(purges.covers(key, generation: first.number) == (scope != .tag("t")))
      purges.finish(second)
      purges.dropOld(at: .now + Purges.longestLoad)
    }
    #expect(!purges.covers(key, generation: 0))
  }

  @Test func `other rules of hosts assign other tags`() {
    let purges = Purges()
    let key = CacheKey(text: "https://shop.example/1 w=1")
    let purge = purges.add(.tag("shop"))
    #expect(!purges.covers(key, generation: purge.number - 1))
    purges.apply(Self.filter)
    #expect(purges.covers(key, generation: purge.number - 1))
  }

  @Test(arguments: ["url", "prefix", "host", "tag", "everything"])
  func `among open purges of one scope, only the last stays and finishes for all`(kind: String)
    throws
  {
    // Given an unfinished purge, also of an earlier run
    let value = kind == "url" || kind == "prefix" ? "https://shop.example/1" : "shop.example"
    let scope = try Self.scope(kind, value: kind == "tag" ? "shop" : value)
    let key = CacheKey(text: "https://shop.example/1 w=1")
    let purges = Purges(filter: Self.filter)
    purges.restore([Purge(number: 1, scope: scope), Purge(number: 2, scope: scope)], last: 2)
    // When it is repeated many times
    let all = (0..<100).map { _ in purges.add(scope) }
    // Then one unfinished purge covers all of them.
    let last = try #require(all.last)
    #expect(purges.unfinished == [last])
    for purge in all.dropLast() { purges.finish(purge) }
    purges.dropOld(at: .now + .seconds(100_000))
    #expect(purges.unfinished == [last])
    #expect(purges.covers(key, generation: last.number - 1))
    purges.finish(last)
    #expect(purges.unfinished.isEmpty)
    purges.dropOld(at: .now + .seconds(100_000))
    #expect(!purges.covers(key, generation: 0))
  }

  @Test
  func `the number of finished purges is limited, and unfinished ones are never dropped`()
    throws
  {
    let purges = Purges()
    let open = purges.add(.everything)
    for number in 0..<Purges.limit + 10 {
      purges.finish(purges.add(.url(try SourceURL(parsing: "https://a.example/\(number)"))))
    }
    let generation = open.number
    #expect(!purges.covers(CacheKey(text: "https://a.example/9"), generation: generation))
    #expect(purges.covers(CacheKey(text: "https://a.example/10"), generation: generation))
    #expect(purges.unfinished == [open])
    #expect(purges.covers(CacheKey(text: "https://a.example/9"), generation: generation - 1))
  }

  @Test func `a written purge record is read back unchanged`() throws {
    var notes = PurgeJournal()
    notes.cleared = UnixTime(seconds: 1_700_000_000)
    let values = [
      ("url", "https://a.example/%20x?a=%5C&b=1"), ("prefix", "local:///a%23b/"),
      ("host", "*.a.example"), ("host", "*"), ("host", "::1"), ("tag", "a b\\n\n\\ü"), ("tag", ""),
      ("everything", ""),
    ]
    for (index, (kind, value)) in values.enumerated() {
      notes.purges.append(
        Purge(number: 1_000 + index, scope: try Self.scope(kind, value: value)))
    }
    notes.last = 2_000
    let read = PurgeJournal(parsing: notes.text) { Issue.record("line \($0)") }
    #expect(read == notes)
    #expect(PurgeJournal().text == "")
  }

  @Test func `a journal cut anywhere keeps its whole lines`() throws {
    var notes = PurgeJournal()
    for value in ["https://a.example/ab/", "https://a.example/ü/"] {
      notes.purges.append(
        Purge(number: 1_000 + notes.purges.count, scope: try Self.scope("prefix", value: value)))
    }
    notes.purges.append(Purge(number: 1_002, scope: .tag("a b")))
    let text = Array(notes.text.utf8)
    for length in 0...text.count {
      let whole = text[..<length].count { $0 == UInt8(ascii: "\n") }
      let read = PurgeJournal(parsing: String(decoding: text[..<length], as: UTF8.self)) {
        Issue.record("line \($0)")
      }
      #expect(read.purges == Array(notes.purges.prefix(whole)))
    }
  }

  @Test func `damaged journal lines are reported and skipped`() {
    let text = """
      17 last
      18 host a.example
      x host a.example
      19 hst a.example
      20
      21 url not a url
      22 url HTTPS://A.example/1
      -1 everything
      23 everything really
      24 host a b
      25 tag t
      16 prefix https://a.example/
      26 clear x
      27 host
      28 hos

      """
    var damaged: [Int] = []
    let notes = PurgeJournal(parsing: text) { damaged.append($0) }
    #expect(damaged == [3, 4, 5, 6, 7, 8, 9, 10, 13, 14, 15])
    #expect(notes.purges.map(\.number) == [16, 18, 25])
    #expect(notes.last == 25)
    #expect(notes.cleared == nil)
  }

  @Test(arguments: 0..<20)
  func `random journal text is parsed without a crash and written back the same`(seed: Int) {
    var random = SeededGenerator(seed: UInt64(seed))
    let words = [
      "1", "2", "99999999999999999999", " ", "\n", "url", "host", "everything", "clear", "last",
      "tag", "\\", "\\n", "ü", "https://a.example/", "a.example", "\u{0}", "\r\n",
    ]
    for _ in 0..<200 {
      let text = (0..<40).map { _ in words.randomElement(using: &random) ?? "" }.joined()
      let notes = PurgeJournal(parsing: text) { _ in }
      #expect(PurgeJournal(parsing: notes.text) { Issue.record("line \($0)") } == notes)
    }
  }
}
