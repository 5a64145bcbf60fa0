// DiskKillTests: a process that writes to a disk tier is killed repeatedly, and the cache stays
// intact.

import CLinux
import Caching
import Core
import Glibc
import TestSupport
import Testing

@testable import disk_writer

@Suite(.onOwnThreads) struct DiskKillTests {
  let folder: TemporaryFolder
  var cache: String { folder.path + "/cache" }

  init() throws { folder = try TemporaryFolder() }

  /// The program `disk-writer` beside the test program.
  struct Writer {
    private let process: ChildProcess
    /// The file with its progress.
    private let output: CInt

    /// A failed step.
    struct Failure: Error {
      let what: String
    }

    /// Starts a process.
    init(_ path: String, seed: Int) throws(Failure) {
      var ends: [CInt] = [-1, -1]
      guard pictor_linux_pipe(&ends) == 0 else { throw Failure(what: "pipe2") }
      defer { close(ends[1]) }
      output = ends[0]
      do {
        process = try ChildProcess(
          [TestBuild.programFolder + "/disk-writer", path, "\(seed)"],
          output: .descriptor(ends[1]))
      } catch {
        throw Failure(what: error.description)
      }
    }

    /// Waits until it has started and has done this much work, or has ended.
    func wait(for pieces: Int) throws(Failure) {
      var missing = pieces + 1
      var bytes = [UInt8](repeating: 0, count: missing)
      while missing > 0 {
        var wait = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
        guard poll(&wait, 1, 20_000) == 1 else { throw Failure(what: "it does nothing") }
        let count = read(output, &bytes, missing)
        if count <= 0 { return }
        missing -= count
      }
    }

    /// Kills it. Returns its exit status if it had ended by itself, otherwise minus the signal.
    func kill() -> CInt {
      defer { close(output) }
      return process.kill()
    }
  }

  @Test
  func
    `200 kills at random moments cause no wrong byte, purged entry, partial file or exceeded limit`()
    async throws
  {
    var random = SeededGenerator(seed: 5)
    var found = 0
    var maximum = 0
    for round in 0..<200 {
      // Given a process that has checked its predecessor's entries and writes.
      let writer = try Writer(cache, seed: round)
      // At any moment: at the start, while the index is built, and at work, on machines of any
      // speed.
      let pieces = Bool.random(using: &random) ? 0 : Int.random(in: 1..<6, using: &random)
      try writer.wait(for: pieces)
      usleep(UInt32.random(in: 0..<(pieces == 0 ? 20_000 : 1_000), using: &random))
      // When it is killed, then it had found no fault, and is within its limit.
      #expect(writer.kill() == -SIGKILL, "round \(round)")
      let taken = TemporaryFolder.diskUsage(of: cache)
      // Only the purge journal may exceed the limit.
      #expect(taken <= Content.limit + 8_192, "round \(round)")
      maximum = max(maximum, taken)
      #expect(entryFiles() <= Content.countLimit, "round \(round)")
      if round % 20 == 19 { found += try await readAll() }
    }
    // The process was busy; otherwise the test proves nothing.
    #expect(maximum > Content.limit / 2)
    #expect(found > 100)
    #expect(try purges().count > 30)
  }

  /// Returns the number of entry files.
  ///
  /// - Parameter folders: those of finished entries, and of unfinished ones.
  private func entryFiles(in folders: [String] = ["v", "s", "tmp"]) -> Int {
    folders.reduce(0) { $0 + TemporaryFolder.files(below: "\(cache)/\($1)").count }
  }

  /// The purges that certainly happened: the process, its number for the purge, and the prefix of
  /// the purged URLs.
  private func purges() throws -> [(run: Int, number: Int, beginning: String)] {
    let file = try #require(FileRegion(Content.purgesFile(cache)))
    return try String(decoding: file.bytes, as: UTF8.self).split(separator: "\n").map { line in
      let words = line.split(separator: " ")
      return (
        try #require(Int(words[0])), try #require(Int(words[1])), String(words[2])
      )
    }
  }

  /// Reads every possible entry in this process. Returns the number of entries found.
  private func readAll() async throws -> Int {
    let tier = try DiskTier(Content.configuration(cache), log: .silent)
    #expect(await tier.ready())
    await tier.clean()
    try await eventually { tier.figures.purgesPending == 0 }
    try await eventually { TemporaryFolder.files(below: cache + "/tmp").isEmpty }
    try await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) }
    // After its last purge, the sweeper writes its journal, for a moment to `tmp`.
    let files = entryFiles(in: ["v", "s"])
    #expect(tier.figures.entries == files)
    let purges = try purges()
    // A killed process may lose its last number, so numbers of different processes are not
    // compared.
    func isPurged(_ key: CacheKey, seed: String?, generation: Int) throws -> Bool {
      let run = Content.run(ofSeed: try #require(seed.flatMap { Int($0) }))
      return purges.contains {
        (run, generation) < ($0.run, $0.number) && key.text.hasPrefix($0.beginning)
      }
    }
    var found = 0
    for number in Content.numbers {
      let key = Content.sourceKey(number)
      if let source = await tier.source(for: key) {
        #expect(Content.isRight(source, for: key))
        #expect(try !isPurged(key, seed: source.origin.etag, generation: source.generation))
        found += 1
      }
      for width in Content.widths {
        let key = Content.variantKey(number, width: width)
        if let variant = await tier.variant(for: key) {
          #expect(Content.isRight(variant, for: key))
          #expect(
            try !isPurged(
              key, seed: variant.info.etag.description, generation: variant.info.generation))
          found += 1
        }
      }
    }
    #expect(found == files)
    #expect(tier.figures.damaged == 0)
    await tier.shutDown(within: .seconds(10))
    return found
  }
}
