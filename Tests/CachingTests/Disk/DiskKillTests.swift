// DiskKillTests: a process that writes to a disk tier is killed repeatedly, and the cache stays
// intact.

import CLinux
import Caching
import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import disk_writer

@Suite(.onOwnThreads) struct DiskKillTests {
  let folder: TemporaryFolder
  var cache: String { folder.path + "/cache" }

  init() throws { folder = try TemporaryFolder() }

  /// The program `disk-writer` beside the test program.
  struct Writer {
    let id: pid_t
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
      var actions = posix_spawn_file_actions_t()
      posix_spawn_file_actions_init(&actions)
      defer { posix_spawn_file_actions_destroy(&actions) }
      posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
      var program = [CChar](repeating: 0, count: Int(PATH_MAX))
      let length = readlink("/proc/self/exe", &program, program.count)
      guard length > 0 else { throw Failure(what: "readlink") }
      let text = String(decoding: program[..<length].map(UInt8.init(bitPattern:)), as: UTF8.self)
      let folder = "/" + text.split(separator: "/").dropLast().joined(separator: "/")
      let arguments = [folder + "/disk-writer", path, "\(seed)"]
      var argv = arguments.map { strdup($0) } + [nil]
      defer { for pointer in argv { free(pointer) } }
      var id = pid_t()
      guard posix_spawn(&id, arguments[0], &actions, nil, &argv, environ) == 0 else {
        throw Failure(what: arguments[0])
      }
      self.id = id
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
      Glibc.kill(id, SIGKILL)
      defer { close(output) }
      var status: CInt = 0
      waitpid(id, &status, 0)
      return status & 0x7f == 0 ? status >> 8 & 0xff : -(status & 0x7f)
    }
  }

  @Test
  func
    `killed 200 times at any moment: no wrong byte, nothing purged, nothing left half written, no limit passed`()
    async throws
  {
    var random = SeededGenerator(seed: 5)
    var (found, most) = (0, 0)
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
      most = max(most, taken)
      #expect(entryFiles() <= Content.countLimit, "round \(round)")
      if round % 20 == 19 { found += try await readAll() }
    }
    // The process was busy; otherwise the test proves nothing.
    #expect(most > Content.limit / 2)
    #expect(found > 100)
    #expect(try purges().count > 30)
  }

  /// Returns the number of entry files, unfinished ones included.
  private func entryFiles() -> Int {
    ["v", "s", "tmp"].reduce(0) { $0 + TemporaryFolder.files(below: "\(cache)/\($1)").count }
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
    #expect(await eventually { tier.figures.purgesPending == 0 })
    #expect(await eventually { TemporaryFolder.files(below: cache + "/tmp").isEmpty })
    #expect(await eventually { tier.figures.bytes == TemporaryFolder.diskUsage(of: cache) })
    let files = entryFiles()
    #expect(tier.figures.entries == files)
    let purges = try purges()
    // A killed process may lose its last number, so numbers of different processes are not
    // compared.
    func isPurged(_ key: CacheKey, seed: String?, _ generation: Int) throws -> Bool {
      let run = Content.run(ofSeed: try #require(seed.flatMap { Int($0) }))
      return purges.contains {
        (run, generation) < ($0.run, $0.number) && key.text.hasPrefix($0.beginning)
      }
    }
    var found = 0
    for number in Content.numbers {
      let key = Content.sourceKey(number)
      if let source = await tier.source(for: key) {
        #expect(Content.isRight(source, key))
        #expect(try !isPurged(key, seed: source.origin.etag, source.generation))
        found += 1
      }
      for width in Content.widths {
        let key = Content.variantKey(number, width: width)
        if let variant = await tier.variant(for: key) {
          #expect(Content.isRight(variant, key))
          #expect(try !isPurged(key, seed: variant.info.etag, variant.info.generation))
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
