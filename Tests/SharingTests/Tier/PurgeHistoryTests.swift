// PurgeHistoryTests: which shared entries a machine accepts.

import Model
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
    history.addPending(.url(url), number: 7)
    #expect(!allows(history, 100))
    // An earlier purge of the same scope does not end it.
    history.add(.url(url), at: at(10), own: 6)
    #expect(!allows(history, 100))
    history.add(.url(url), at: at(11), own: 7)
    #expect(allows(history, 11))
    #expect(!allows(history, 10))
    // One of everything stands for earlier ones.
    history.addPending(.url(url), number: 8)
    history.add(.everything, at: at(12), own: 9)
    #expect(allows(history, 12))
  }

  @Test func `a history beyond its bound refuses older entries`() {
    var history = history()
    for number in 0..<PurgeHistory.limit { history.add(.tag("\(number)"), at: at(10), own: nil) }
    #expect(allows(history, 1))
    history.add(.tag("more"), at: at(20), own: nil)
    #expect(!allows(history, 19))
    #expect(allows(history, 20))
  }

  @Test func `entries are read back, and damaged ones are none`() {
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
