// Writing: stores, replaces, reads, removes and purges entries in an endless loop and checks every
// read.

import Caching
import Core
import Glibc

/// `disk-writer FOLDER SEED`: writes a byte to standard output at its start and after each piece of
/// work. It ends by itself only after an error, with a status for the kind of error.
enum Writing {
  /// A read returned other bytes than were stored.
  static let wrongBytes: CInt = 3
  /// The start left a temporary file behind.
  static let leftovers: CInt = 4
  /// The tier could not be opened.
  static let unusable: CInt = 5

  static func run() async {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let seed = UInt64(arguments[2]) else { exit(2) }
    // Ends this process if the test that started it was killed.
    alarm(60)
    tell()
    do {
      let purges = Purges()
      let tier = try DiskTier(
        Content.configuration(arguments[1]), purges: purges, log: Log(level: .error))
      // Before the first store only the purge journal uses `tmp`, for a moment.
      var looks = 0
      while !isEmpty(arguments[1] + "/tmp") {
        looks += 1
        guard looks < 500 else { exit(leftovers) }
        try await Task.sleep(for: .milliseconds(10))
      }
      while !tier.isIndexed { await Task.yield() }
      let writer = Writer(
        tier: tier, run: Int(seed), purges: purges,
        purged: open(
          Content.purgesFile(arguments[1]), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600))
      try await withThrowingTaskGroup(of: Void.self) { group in
        for task in 0..<3 {
          group.addTask { try await work(writer, start: Chance(seed: seed &* 3 &+ UInt64(task))) }
        }
        try await group.waitForAll()
      }
    } catch {
      exit(unusable)
    }
  }

  /// The state shared by the tasks.
  private struct Writer: Sendable {
    let tier: DiskTier
    let run: Int
    let purges: Purges
    /// The descriptor of the file that lists completed purges.
    let purged: CInt

    /// Purges, and records the completed purge with one system call.
    func purge(_ scope: PurgeScope, of beginning: String) async throws {
      let purge = purges.add(scope)
      _ = try await tier.purge(purge)
      let line = "\(run) \(purge.number) \(beginning)\n"
      _ = write(purged, line, line.utf8.count)
    }
  }

  private static func work(_ writer: Writer, start: Chance) async throws {
    let tier = writer.tier
    let purges = writer.purges
    var chance = start
    for step in 1... {
      if step.isMultiple(of: 20) { tell() }
      let number = Int.random(in: Content.numbers, using: &chance)
      let width = Int.random(in: Content.widths, using: &chance)
      let source = Content.sourceKey(number)
      let variant = Content.variantKey(number, width: width)
      let seed =
        writer.run * Content.seedsPerRun
        + Int.random(in: 0..<Content.seedsPerRun, using: &chance)
      let generation = purges.generation
      switch Int.random(in: 0..<100, using: &chance) {
      case 0..<15: tier.store(try Content.source(source, seed: seed, generation: generation))
      case 15..<50: tier.store(Content.variant(variant, seed: seed, generation: generation))
      case 50..<55:
        // Replaced by the same bytes.
        if let kept = await tier.source(for: source) { tier.store(kept) }
      case 55..<58: await tier.remove(variant)
      case 58..<60: await tier.removeVariants(of: source)
      case 60: await tier.clean()
      case 61:
        try await writer.purge(.url(try SourceURL(parsing: source.text)), of: source.text)
      case 62:
        let beginning = String(source.text.dropLast(3))
        try await writer.purge(.prefix(try SourceURL(parsing: beginning)), of: beginning)
      case 63..<75:
        if let kept = await tier.source(for: source), !Content.isRight(kept, for: source) {
          exit(wrongBytes)
        }
      default:
        if let kept = await tier.variant(for: variant), !Content.isRight(kept, for: variant) {
          exit(wrongBytes)
        }
      }
      while tier.pendingBytes > 200_000 { await Task.yield() }
    }
  }

  private static func tell() { _ = write(STDOUT_FILENO, "\n", 1) }

  private static func isEmpty(_ path: String) -> Bool {
    guard let stream = opendir(path) else { return false }
    defer { closedir(stream) }
    var count = 0
    while readdir(stream) != nil { count += 1 }
    // "." and "..".
    return count == 2
  }
}
