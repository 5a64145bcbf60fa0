// PurgeJournalFileTests: what is in the file of the purge journal when a purge is answered.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct PurgeJournalFileTests {
  let folder: TemporaryFolder
  let purges = Purges()
  let parts: DiskEngine
  var path: String { folder.path + "/cache/purges" }

  /// A tier whose purges stay unfinished: it has no index.
  init() throws {
    folder = try TemporaryFolder()
    parts = try DiskEngine(folder, purges: purges)
    try parts.sweeper.start()
  }

  func purge(_ tag: String) async throws {
    _ = try await parts.sweeper.perform(.writeDown(purges.add(.tag(tag)))).written()
  }

  func text() throws -> String {
    String(decoding: try #require(FileRegion(path)).bytes, as: UTF8.self)
  }

  func read() throws -> [Purge] {
    PurgeJournal(parsing: try text()) { Issue.record("line \($0)") }.purges
  }

  func end() {
    parts.sweeper.stop()
    #expect(parts.sweeper.waitForEnd(within: .seconds(10)))
    #expect(parts.threads.finish(within: .seconds(10)))
  }

  @Test func `purges are appended to the journal`() async throws {
    try await purge("0")
    var before = try text()
    for number in 1..<20 {
      try await purge("\(number)")
      let after = try text()
      #expect(
        after.hasPrefix(before) && after.utf8.count { $0 == UInt8(ascii: "\n") } == number + 2)
      before = after
      #expect(try read() == purges.unfinished)
    }
    #expect(parts.store.space.bytes == TemporaryFolder.diskUsage(of: folder.path + "/cache"))
    end()
  }

  @Test func `a journal that is cut, lengthened or deleted is written anew`() async throws {
    for tag in ["a", "b", "c"] {
      try await purge(tag + "1")
      switch tag {
      case "a": #expect(truncate(path, off_t(try text().utf8.count - 2)) == 0)
      case "b": try folder.write("cache/purges", bytes: Array((try text() + "1 ho").utf8))
      default: unlink(path)
      }
      try await purge(tag + "2")
      #expect(try read() == purges.unfinished)
    }
    end()
  }

  @Test func `purges that could not be recorded are recorded later`() async throws {
    try await purge("a")
    unlink(path)
    mkdir(path, 0o700)
    await #expect(throws: ImageError.self) { try await purge("b") }
    rmdir(path)
    _ = try await parts.sweeper.perform(.writeDown(nil)).written()
    #expect(try read() == purges.unfinished && purges.unfinishedCount == 2)
    end()
  }

  @Test func `a purge that is repeated does not let the journal grow without end`() async throws {
    let tag = String(repeating: "x", count: 4_000)
    for _ in 0..<40 { try await purge(tag) }
    #expect(try text().utf8.count < 80_000)
    #expect(try read().last == purges.unfinished.last && purges.unfinishedCount == 1)
    end()
  }
}
