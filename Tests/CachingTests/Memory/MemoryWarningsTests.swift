// MemoryWarningsTests: the memory tier shrinks under memory pressure and fills again afterwards.

import Core
import Glibc
import TestSupport
import Testing

@testable import Caching

@Suite(.onOwnThreads) struct MemoryWarningsTests {
  private let tier: MemoryTier
  private let configuration: MemoryTierConfiguration

  init() {
    var configuration = MemoryTierConfiguration()
    configuration.limit = 1 << 20
    self.configuration = configuration
    tier = MemoryTier(configuration)
  }

  private func fill() {
    for number in 0..<1_000 { tier.store(Sample.variant(number, bytes: Sample.bytes(2_000))) }
  }

  @Test
  func `under pressure the tier halves, then empties and stores nothing, and later fills again`() {
    let sample = Lock(PressureSample(share: 0.5))
    let watch = PressureWatch(tier: tier, configuration, log: .silent) { sample.withLock { $0 } }
    var now = ContinuousClock.now
    func look(_ share: Double, times: Int = 1) {
      sample.withLock { $0.share = share }
      for _ in 0..<times {
        watch.look(at: now)
        now += .seconds(1)
      }
    }
    fill()
    let full = tier.figures.entries
    let evicted = tier.figures.evictions
    look(0.5)
    #expect(tier.figures.entries == full)
    #expect(watch.figures.evictions == 0 && watch.figures.active == false)

    look(0.95)
    let half = tier.figures
    #expect(half.bytes <= 1 << 19 && half.bytes > 1 << 18)
    #expect(watch.figures.limit == 1 << 19)
    #expect(watch.figures.active == true && watch.figures.warnings == 1)
    #expect(watch.figures.evictions == full - half.entries)
    #expect(half.evictions - evicted == full - half.entries)
    // Remaining entries are found, and the lower limit is in force.
    fill()
    #expect(tier.figures.bytes <= 1 << 19)
    #expect(tier.variant(for: Sample.variantKey(999)) != nil)

    look(0.95, times: 10)
    #expect(tier.figures.entries == 0 && tier.figures.bytes == 0)
    #expect(!tier.store(Sample.variant(1, bytes: Sample.bytes(10))))
    #expect(tier.variant(for: Sample.variantKey(1)) == nil)

    look(0.5, times: 60)
    #expect(watch.figures.limit == 1 << 20 && watch.figures.active == false)
    fill()
    #expect(tier.figures.entries == full)
    #expect(tier.figures.limit == 1 << 20)
  }

  @Test func `recently requested variants outlive a halving`() {
    for number in 0..<1_000 { tier.store(Sample.variant(number, bytes: [])) }
    let kept = (0..<1_000).filter { tier.peek(Sample.variantKey($0)) != nil }
    let asked = kept.filter { $0.isMultiple(of: 10) }
    for number in asked + asked { _ = tier.variant(for: Sample.variantKey(number)) }
    #expect(tier.setLimit(1 << 19) > 300)
    let left = asked.count { tier.peek(Sample.variantKey($0)) != nil }
    #expect(left == asked.count && left > 50)
  }

  @Test func `a changing limit under concurrent use keeps the accounted size exact`()
    async
  {
    await withTaskGroup(of: Void.self) { group in
      for task in 0..<4 {
        group.addTask { [tier] in
          var random = SeededGenerator(seed: UInt64(task))
          for _ in 0..<5_000 {
            let number = Int.random(in: 0..<2_000, using: &random)
            if tier.variant(for: Sample.variantKey(number)) == nil {
              tier.store(Sample.variant(number, bytes: [UInt8](repeating: 1, count: 2_000)))
            }
          }
        }
      }
      group.addTask { [tier] in
        var random = SeededGenerator(seed: 99)
        for _ in 0..<500 {
          _ = tier.setLimit([0, 1 << 18, 1 << 19, 1 << 20].randomElement(using: &random) ?? 0)
        }
      }
    }
    _ = tier.setLimit(1 << 18)
    #expect(tier.figures.bytes <= 1 << 18)
    _ = tier.setLimit(0)
    #expect(tier.figures.bytes == 0 && tier.figures.entries == 0)
  }

  @Test func `the monitoring thread reads the kernel's files and shrinks the tier`() async throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "1000000", used: 990_000, cache: 1_000)
    fill()
    let warnings = MemoryWarnings(
      for: tier, configuration, log: .silent, root: kernel.folder.path)
    try warnings.start()
    try await eventually { warnings.figures?.evictions.whole ?? 0 > 0 }
    #expect(tier.figures.bytes <= 1 << 19)
    #expect(warnings.figures?.share.number == 0.989)
    warnings.stop()
  }

  @Test func `when no kernel file is readable, one line is logged and the tier keeps its limit`()
    throws
  {
    let folder = try TemporaryFolder()
    let file = FileRegion(
      owning: open(folder.path + "/log", O_RDWR | O_CREAT, 0o600), count: 10_000)
    let log = Log(level: .info, descriptor: file.descriptor)
    let warnings = MemoryWarnings(for: tier, configuration, log: log, root: folder.path)
    try warnings.start()
    #expect(warnings.figures == nil)
    var off = configuration
    off.pressure = 0
    #expect(MemoryWarnings(for: tier, off, log: log).figures == nil)
    fill()
    #expect(tier.figures.bytes > 1 << 19)
    let lines = String(decoding: file.bytes, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 1)
    #expect(lines.first?.contains("memory pressure is unavailable") == true)
  }
}
