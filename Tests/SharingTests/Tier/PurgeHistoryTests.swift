// PurgeHistoryTests: which shared entries a machine accepts.

import Core
import Testing

@testable import Sharing

@Suite struct PurgeHistoryTests {
  private let key = CacheKey(text: "https://example.com/a.jpg w=20")
  private let url: SourceURL

  init() throws { url = try SourceURL(parsing: "https://example.com/a.jpg") }

  private func at(_ number: UInt64) -> StreamPosition {
    StreamPosition(milliseconds: number, number: 0)
  }

  private func history(floor: UInt64 = 0) -> PurgeHistory {
    var history = PurgeHistory()
    history.begin(epoch: "e", floor: at(floor))
    return history
  }

  private func allows(_ history: PurgeHistory, epoch: String = "e", _ number: UInt64) -> Bool {
    history.allows(
      key, mark: SharedMark(epoch: epoch, milliseconds: number, number: 0), filter: CacheKeyFilter()
    )
  }

  @Test func `an entry is refused if a later purge covers it`() {
    var history = history()
    history.add(.url(url), at: at(10), own: nil)
    #expect(!allows(history, 9))
    #expect(allows(history, 10))
    history.add(.everything, at: at(20), own: nil)
    #expect(!allows(history, 19))
    #expect(allows(history, 20))
  }

  @Test func `purges of others do not count`() throws {
    var history = history()
    history.add(.url(try SourceURL(parsing: "https://example.com/b.jpg")), at: at(10), own: nil)
    history.add(.prefix(try SourceURL(parsing: "https://other.example/")), at: at(11), own: nil)
    #expect(allows(history, 1))
  }

  @Test func `another epoch, an old mark and a machine without a history refuse`() {
    #expect(!allows(PurgeHistory(), epoch: "", 1))
    #expect(!allows(history(), epoch: "other", 1))
    #expect(!allows(history(floor: 5), 4))
    #expect(allows(history(floor: 5), 5))
  }

  @Test func `an own purge counts until it is read in the stream`() {
    var history = history()
    for number in 1...2 { #expect(history.own.begin(.url(url)) == number) }
    #expect(!allows(history, 100))
    // An earlier purge of the same scope does not end it.
    history.add(.url(url), at: at(10), own: 1)
    #expect(!allows(history, 100))
    history.add(.url(url), at: at(11), own: 2)
    #expect(allows(history, 11))
    #expect(!allows(history, 10))
    // One of everything stands for earlier ones.
    #expect(history.own.begin(.url(url)) == 3)
    history.add(.everything, at: at(12), own: 4)
    #expect(allows(history, 12))
  }

  @Test func `an own purge of any kind refuses what it contains, and nothing else`() throws {
    let host = try #require(HostPattern("example.com"))
    let prefix = try SourceURL(parsing: "https://example.com/a")
    let others = try ["https://other.example/a", "https://example.com/b"].map {
      try SourceURL(parsing: $0)
    }
    for scope in [PurgeScope.url(url), .host(host), .prefix(prefix), .everything] {
      var history = history()
      for other in others { _ = history.own.begin(.url(other)) }
      _ = history.own.begin(.tag("none"))
      #expect(allows(history, 1))
      let number = history.own.begin(scope)
      #expect(!allows(history, 1), "\(scope)")
      history.own.read(scope, number: number)
      #expect(allows(history, 1), "\(scope)")
    }
  }

  @Test func `an acknowledged purge is missing until it is read`() {
    var own = OwnPurges()
    for tag in ["a", "b", "c"] { _ = own.begin(.tag(tag)) }
    own.acknowledge([(.tag("a"), 1), (.tag("b"), 2)])
    // Made again meanwhile.
    #expect(own.begin(.tag("b")) == 4)
    own.acknowledge([(.tag("b"), 2)])
    let acknowledged = own.acknowledged
    #expect(acknowledged.map(\.number) == [1])
    #expect(own.missing(of: acknowledged).map(\.number) == [1])
    own.read(.tag("a"), number: 1)
    #expect(own.missing(of: acknowledged).isEmpty)
  }

  @Test func `each scope waits once, with the number of its last purge`() {
    var own = OwnPurges([.tag("a"), .tag("b"), .tag("a")])
    #expect(own.waiting.map(\.scope) == [.tag("b"), .tag("a")])
    // One that is made again during a delivery waits for the next one.
    let delivered = own.waiting
    own.wait(.tag("b"), number: own.begin(.tag("b")))
    own.acknowledge(delivered)
    #expect(own.waiting.map(\.number) == [4])
    // Also if the first one is read only then.
    own.read(.tag("b"), number: 2)
    own.acknowledge(own.waiting)
    #expect(own.waitingCount == 0 && own.acknowledged.map(\.number).sorted() == [3, 4])
  }

  @Test func `a purge of everything that Redis has stays so while an older one waits`() {
    var own = OwnPurges([.everything])
    let older = own.begin(.tag("a"))
    let newer = own.begin(.everything)
    own.acknowledge([(.everything, newer)])
    own.wait(.tag("a"), number: older)
    #expect(own.waiting.map(\.number) == [older])
    #expect(own.acknowledged.map(\.number) == [newer])
  }

  @Test func `one purge of everything replaces those that wait, and not those that begin`() {
    var own = OwnPurges((0..<OwnPurges.limit).map { .tag("\($0)") })
    own.wait(.tag("0"), number: own.begin(.tag("0")))
    #expect(own.waitingCount == OwnPurges.limit)
    let number = own.begin(.tag("x"))
    let later = own.begin(.tag("later"))
    own.wait(.tag("x"), number: number)
    #expect(own.waiting.map(\.scope) == [.everything])
    own.acknowledge([(.tag("later"), later)])
    #expect(own.acknowledged.map(\.number) == [later])
    own.wait(.tag("more"), number: own.begin(.tag("more")))
    #expect(own.waiting.map(\.scope) == [.everything])
    own.acknowledge(own.waiting)
    #expect(own.acknowledged.map(\.scope) == [.everything] && own.waitingCount == 0)
    own.wait(.tag("x"), number: own.begin(.tag("x")))
    #expect(own.waiting.map(\.scope) == [.tag("x")])
  }

  @Test func `a history beyond its bound refuses older entries, and a full stream is within`() {
    #expect(PurgeHistory.limit > PurgeCommands.length)
    var history = history()
    for number in 0..<PurgeHistory.scanLimit {
      history.add(.tag("\(number)"), at: at(10), own: nil)
    }
    #expect(allows(history, 1))
    history.add(.tag("more"), at: at(20), own: nil)
    #expect(!allows(history, 19))
    #expect(allows(history, 20))
  }

  @Test func `an entry is read again until it is applied`() {
    var history = history()
    history.add(.url(url), at: at(10), own: nil)
    #expect(history.position == .start)
    history.advance(to: at(10))
    history.advance(to: at(9))
    #expect(history.position == at(10))
  }

  @Test func `entries are read back, and damaged ones are rejected`() {
    let mark = SharedMark(epoch: "abc", milliseconds: 1_700_000_000_000, number: 3)
    let bytes = SharedEntry.bytes(mark, [1, 2, 3])
    #expect(SharedEntry.read(bytes).map { $0.0 == mark && $0.1.elementsEqual([1, 2, 3]) } == true)
    for index in bytes.indices where !(2..<21).contains(index) {
      var damaged = bytes
      damaged[index] ^= 0x41
      #expect(SharedEntry.read(damaged) == nil, "byte \(index)")
    }
    for count in bytes.indices { #expect(SharedEntry.read(Array(bytes.prefix(count))) == nil) }
  }
}

extension SharedEntry {
  /// Reads an entry of the kind `whole`.
  static func read(_ bytes: [UInt8]) -> (SharedMark, ArraySlice<UInt8>)? {
    let found = bytes.withUnsafeBytes { buffer in
      parse(buffer).flatMap { $0.kind == .whole ? ($0.mark, $0.content.count) : nil }
    }
    return found.map { ($0.0, bytes.suffix($0.1)) }
  }
}
