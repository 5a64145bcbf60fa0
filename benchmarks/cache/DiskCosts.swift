// DiskCosts: what the disk tier costs by the number of its entries: looking up, starting, and memory.

import CLinux
import Caching
import Core

/// The disk tier with so many entries.
struct DiskCost: Encodable {
  let entries: Int
  /// Microseconds of a look-up that finds a variant which the kernel has at hand, without a change of threads.
  let hit: Double
  /// The same by way of the tier's threads.
  let waitedHit: Double
  /// Microseconds of a look-up that finds nothing.
  let miss: Double
  /// Milliseconds from opening the folder to the first image read.
  let firstAnswer: Double
  /// The same, until the index is complete.
  let indexed: Double
  /// Bytes that malloc handed out meanwhile and did not get back, an entry.
  let indexBytes: Double
}

enum DiskCosts {
  /// Look-ups of each kind, at most so many different ones.
  private static let lookUps = 20_000

  /// Measures a folder that `DiskFilling` made. In a process of its own, where nothing else allocates or frees.
  static func measure(_ folder: String, count: Int) async throws -> DiskCost {
    let before = allocated
    let start = ContinuousClock.now
    let tier = try DiskFilling.open(folder)
    guard await tier.variant(for: DiskFilling.key(count / 2)) != nil else {
      CacheBenchmark.fail("entry \(count / 2) of \(count) is not there")
    }
    let firstAnswer = start.duration(to: .now)
    while !tier.isIndexed { try await Task.sleep(for: .microseconds(100)) }
    let indexed = start.duration(to: .now)
    let index = allocated - before
    guard tier.figures.entries.whole == count else {
      CacheBenchmark.fail("\(tier.figures.entries.whole) entries instead of \(count)")
    }

    var chance = Chance(seed: 5)
    let different = min(count, lookUps)
    let picked = (0..<different).map { _ in
      DiskFilling.key(Int.random(in: 0..<count, using: &chance))
    }
    let absent = (0..<different).map { DiskFilling.key(count + $0) }
    // Once each beforehand: the first read after a start is checked, and its use is written down.
    for key in picked { _ = await tier.variant(for: key) }
    let cost = DiskCost(
      entries: count,
      // More entries than fit the memory: the kernel drops some meanwhile, and a thread reads them again.
      hit: try await each(picked) { key in
        if tier.variantAtOnce(for: key, where: { _ in true }) != nil { return true }
        return await tier.variant(for: key) != nil
      },
      waitedHit: try await each(picked) { key in await tier.variant(for: key) != nil },
      miss: try await each(absent) { key in await tier.variant(for: key) == nil },
      firstAnswer: firstAnswer.inSeconds * 1e3, indexed: indexed.inSeconds * 1e3,
      indexBytes: Double(index) / Double(count))
    await tier.shutDown(within: .seconds(60))
    return cost
  }

  /// Microseconds of a look-up, over all keys as often as `lookUps` demands.
  private static func each(
    _ keys: [CacheKey], _ isRight: (CacheKey) async -> Bool
  ) async throws -> Double {
    var wrong = 0
    let rounds = max(lookUps / keys.count, 1)
    let start = ContinuousClock.now
    for _ in 0..<rounds {
      for key in keys where await !isRight(key) { wrong += 1 }
    }
    let time = start.duration(to: .now).inSeconds * 1e6 / Double(rounds * keys.count)
    guard wrong == 0 else { CacheBenchmark.fail("\(wrong) look-ups found what they should not") }
    return time
  }

  /// Bytes handed out by malloc, by all arenas and by mmap.
  static var allocated: Int {
    let info = mallinfo2()
    return info.uordblks + info.hblkhd
  }
}
