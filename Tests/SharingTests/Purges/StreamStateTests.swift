// StreamStateTests: how a machine begins to read, what waits, and texts, all without Redis.

import Core
import Glibc
import TestSupport
import Testing

@testable import Sharing

@Suite struct StreamStateTests {
  private static func at(_ number: UInt64) -> StreamPosition {
    StreamPosition(milliseconds: number, number: 0)
  }

  private func at(_ number: UInt64) -> StreamPosition { Self.at(number) }

  private func state(isWhole: Bool = true, hasApplied: Bool = true) -> StreamState {
    StreamState(
      epoch: "e", oldest: at(10), newest: at(20), isWhole: isWhole, hasApplied: hasApplied)
  }

  private static let beginnings:
    [(
      epoch: String?, position: UInt64, isWhole: Bool, hasApplied: Bool,
      expected: StreamState.Beginning
    )] = [
      // A machine continues where it was.
      ("e", 15, true, true, .read(after: at(15))), ("e", 15, false, true, .read(after: at(15))),
      // A new one reads a whole stream, and purges everything before a trimmed one.
      (nil, 0, true, true, .read(after: .start)), (nil, 0, false, true, .purgeEverything(at(20))),
      // One that missed trimmed entries, or knows another epoch, purges everything.
      ("e", 9, false, true, .purgeEverything(at(20))),
      ("other", 15, true, true, .purgeEverything(at(20))),
      // A position beyond the stream, or an applied entry that it lacks: Redis lost some.
      ("e", 21, true, true, .renewEpoch), ("e", 15, true, false, .renewEpoch),
      ("e", 15, false, false, .renewEpoch),
      // An entry that was trimmed is no loss of others.
      ("e", 9, true, false, .read(after: at(9))), ("e", 9, false, false, .purgeEverything(at(20))),
    ]

  @Test(arguments: beginnings.indices)
  func `a machine begins where the stream and its own position say`(index: Int) {
    let (epoch, position, isWhole, hasApplied, expected) = Self.beginnings[index]
    let applied = epoch.map { AppliedPosition(epoch: $0, position: at(position)) }
    #expect(state(isWhole: isWhole, hasApplied: hasApplied).beginning(for: applied) == expected)
  }

  @Test func `an epoch that was left must end, and sixteen are remembered`() throws {
    var applied = AppliedPosition(epoch: "e", position: at(15))
    for number in 0..<AppliedPosition.limit {
      applied = applied.moved(to: at(1), epoch: "\(number)").moved(to: at(2), epoch: "\(number)")
      #expect(state().beginning(for: applied) == .renewEpoch)
      #expect(AppliedPosition(applied.text) == applied)
    }
    applied = applied.moved(to: at(1), epoch: "last")
    #expect(applied.left.count == AppliedPosition.limit && applied.left.first == "15")
    #expect(state().beginning(for: applied) == .purgeEverything(at(20)))
  }

  @Test func `a machine whose position is unknown purges everything`() {
    #expect(state().beginning(for: .unknown) == .purgeEverything(at(20)))
    #expect(AppliedPosition.unknown.moved(to: at(1), epoch: "e").left == [])
  }

  @Test func `positions are ordered as numbers`() {
    #expect(StreamPosition("9-11").map { $0 > StreamPosition(milliseconds: 9, number: 2) } == true)
    for text in ["", "1", "1-", "-1", "1-2-3", "a-b", "99999999999999999999-0"] {
      #expect(StreamPosition(text) == nil)
    }
    let applied = AppliedPosition(epoch: "abc", position: at(3))
    #expect(AppliedPosition(applied.text) == applied)
    for text in ["", "\n", "abc", "abc x\n", "a b c\n", "abc 3-0", "abc 3-0\n\n", "abc 3-0\na b\n"]
    {
      #expect(AppliedPosition(text) == nil)
    }
  }

  @Test func `scopes are written on one line and read back`() throws {
    let url = try SourceURL(parsing: "https://example.com/ä?b=\"c\"")
    let host = try #require(HostPattern("*.example.com"))
    let scopes: [PurgeScope] = [
      .url(url), .prefix(url), .host(host), .tag("a\nb\\\""), .everything,
    ]
    for scope in scopes {
      #expect(!scope.json.contains("\n"))
      #expect(PurgeScope(json: scope.json) == scope)
    }
    for text in [
      "", "{}", "[]", #"{"kind":"url"}"#, #"{"kind":"url","value":"x"}"#,
      #"{"kind":"host","value":" "}"#,
      #"{"kind":"tag"}"#, #"{"kind":"all"}"#, String(repeating: "[", count: 20_000),
    ] { #expect(PurgeScope(json: text) == nil, "\(text)") }
  }

  @Test func `entries of another kind are unknown, and damaged replies are rejected`() {
    func bytes(_ text: String) -> RedisReply { .bytes(Array(text.utf8)) }
    func entry(_ fields: RedisReply...) -> RedisReply { .list([bytes("5-1"), .list(fields)]) }
    #expect(StreamEntry(entry(bytes("epoch"), bytes("e")))?.content == .epoch("e"))
    #expect(
      StreamEntry(
        entry(bytes("machine"), bytes("m"), bytes("scope"), bytes(#"{"kind":"everything"}"#)))?
        .content == .purge(.everything, machine: "m", number: 0))
    #expect(StreamEntry(entry(bytes("scope"), bytes("later")))?.content == .unknown)
    #expect(StreamEntry(entry(bytes("odd")))?.content == .unknown)
    #expect(StreamEntry(entry())?.content == .unknown)
    #expect(StreamEntry(.list([bytes("x"), .list([])])) == nil)
    #expect(StreamEntry.all(.none) == [])
    #expect(StreamEntry.all(.list([.list([bytes("k"), .list([.integer(1)])])])) == nil)
    #expect(StreamEntry.all(.integer(1)) == nil)
  }

  @Test func `a file that cannot be read purges everything`() throws {
    let folder = try TemporaryFolder()
    let files = FleetFiles(folder: folder.path)
    // A folder in its place cannot be read, not even by root.
    for name in ["fleet-purges", "fleet-position"] { mkdir(folder.path + "/" + name, 0o700) }
    #expect(files.readPurges() == [.everything])
    #expect(files.readPosition() == .unknown)
  }

  @Test func `files are read back, and a damaged line purges everything`() throws {
    let folder = try TemporaryFolder()
    let files = FleetFiles(folder: folder.path)
    #expect(files.readPosition() == nil && files.readPurges() == [])
    let applied = AppliedPosition(epoch: "e", position: at(3))
    try files.write(applied)
    try files.write([.tag("a"), .tag("b\n")])
    #expect(files.readPosition() == applied)
    #expect(files.readPurges() == [.tag("a"), .tag("b\n")])
    try folder.write("fleet-purges", bytes: Array("garbage\n".utf8))
    #expect(files.readPurges() == [.everything])
    try folder.write("fleet-position", bytes: Array("garbage\n".utf8))
    #expect(files.readPosition() == .unknown)
  }
}
