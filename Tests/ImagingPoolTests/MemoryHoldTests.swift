// MemoryHoldTests: workers are held to the memory that a job was admitted with.

import Core
import Glibc
import ImagingPool
import TestSupport
import Testing

@Suite(
  .onOwnThreads, .serialized, .timeLimit(.minutes(5)),
  .disabled(if: TestBuild.isThreadSanitized, "a sanitizer's shadow memory has no bound"))
struct MemoryHoldTests {
  /// Suffixes of encoders whose images take more than 2 MiB to decode to the width of `job`.
  private static let sources = [
    ".jpg[interlace]", ".png", ".png[interlace]", ".gif", ".webp", ".webp[lossless]",
    ".tif[compression=lzw]", ".avif[effort=0]", ".heic[effort=0]", ".jxl[effort=3]",
    ".jp2[tile-height=1024]",
  ]
  private static let whole = 1 << 30

  /// Returns the configuration of a worker that may take `part` more, or its estimate if larger.
  private static func configuration(part: Int, slack: Int = 48 << 20, workers: Int = 1)
    -> ImagerPoolConfiguration
  {
    var configuration = PoolSupport.configuration(workers: workers)
    configuration.maximumWorkerMemory = whole
    configuration.limits.maximumBytes = whole
    configuration.limits.maximumQuickBytes = part
    configuration.memorySlack = slack
    return configuration
  }

  private static func job(_ bytes: [UInt8], as format: ImageFormat = .jpeg) throws -> ImageJob {
    var transform = Transform()
    transform.width = 1_000
    transform.format = format
    return ImageJob(file: try .sealed(bytes), transform: transform, density: 1)
  }

  private static func scene(_ suffix: String) throws -> [UInt8] {
    try TestImages.encode(.scene(width: 200, height: 150), as: suffix, zoom: 10)
  }

  /// Returns the digest of the result that a worker without a lower limit makes.
  private static func digest(_ job: ImageJob) async throws -> String {
    var digest = ""
    try await PoolSupport.withPool(configuration(part: .max)) {
      digest = try await $0.process(job).report.digest
    }
    return digest
  }

  /// Returns the limits of a process's private memory, the soft one first.
  private static func memoryLimits(of pid: pid_t) -> [Int] { limits("Max data size", of: pid) }

  /// Returns the limits of a process of this name, the soft one first (proc_pid_limits(5)).
  private static func limits(_ name: String, of pid: pid_t) -> [Int] {
    let lines = try? PoolSupport.lines(of: "/proc/\(pid)/limits")
    let line = lines?.first { $0.hasPrefix(name) }
    return line?.split { $0 == " " }.compactMap { Int($0) } ?? []
  }

  @Test func `a worker may take what its job was admitted with, and no more`() async throws {
    // Given: a part of 4 MiB, and the limits of the worker when it gets a job
    var configuration = Self.configuration(part: 4 << 20)
    let limits = Lock<[[Int]]>([])
    configuration.willSend = { pid in
      let found = Self.memoryLimits(of: pid)
      limits.withLock { $0.append(found) }
    }
    try await PoolSupport.withPool(configuration) { pool in
      _ = try await pool.process(Self.job(Self.scene(".avif[effort=0]")))
      #expect(pool.figures.underestimated == 0)
    }
    // Then: the part and the slack until the estimate is known, and then the estimate and the slack
    let found = limits.withLock { $0 }
    try #require(found.count == 2 && found.allSatisfy { $0.count == 2 })
    #expect(found.allSatisfy { $0[1] == Self.whole })
    #expect(20 << 20..<100 << 20 ~= found[0][0] && found[1][0] - found[0][0] > 20 << 20)
    #expect(found[1][0] < 300 << 20)
  }

  @Test func `a result may have half of what its job was admitted with`() async throws {
    // Given: limits of files of a worker with a job that is not expensive, an expensive one, a GIF
    var configuration = Self.configuration(part: 4 << 20)
    let limits = Lock<[[Int]]>([])
    configuration.willSend = { pid in
      let found = Self.limits("Max file size", of: pid)
      limits.withLock { $0.append(found) }
    }
    try await PoolSupport.withPool(configuration) { pool in
      _ = try await pool.process(Self.job(Self.scene(".avif[effort=0]")))
      _ = try await pool.process(Self.job(Self.scene(".png"), as: .gif))
    }
    // Then
    let found = limits.withLock { $0 }
    try #require(found.count >= 3 && found.allSatisfy { $0.count == 2 })
    #expect(found.allSatisfy { $0[1] == 512 << 20 })
    #expect(found[0][0] == 2 << 20)
    #expect(5 << 20..<150 << 20 ~= found[1][0])
    #expect(found[2][0] == 512 << 20)
  }

  @Test(arguments: ImageFormat.outputs)
  func `results of noise are below half of their estimates`(format: ImageFormat) async throws {
    // Given: pixels that no encoder makes smaller, with alpha, in the best quality
    var transform = Transform()
    transform.format = format
    transform.quality = 100
    var random = SeededGenerator(seed: 20_261_125)
    let pixels = Pixels(width: 700, height: 900, bands: 4) { _, _ in
      (0..<4).map { _ in UInt8.random(in: 0...255, using: &random) }
    }
    let noise = try TestImages.encode(pixels, as: ".png[compression=0]")
    let job = ImageJob(file: try .sealed(noise), transform: transform, density: 1)
    // And: what its result may have, by the part and then by the estimate
    var configuration = Self.configuration(part: 1)
    let limits = Lock<[Int]>([])
    configuration.willSend = { pid in
      let found = Self.limits("Max file size", of: pid).first ?? 0
      limits.withLock { $0.append(found) }
    }
    // Then
    try await PoolSupport.withPool(configuration) { pool in
      let result = try await pool.process(job)
      let found = limits.withLock { $0 }
      try #require(found.count >= 2)
      #expect(result.body.count <= found[1], "\(result.body.count) of \(found)")
    }
  }

  @Test func `a result above its limit is made again with the whole memory, and then fails`()
    async throws
  {
    var configuration = Self.configuration(part: 4 << 20)
    configuration.maximumResultBytes = 10_000
    try await PoolSupport.withPool(configuration) { pool in
      await #expect {
        try await pool.process(Self.job(Self.scene(".png"), as: .png))
      } throws: {
        ($0 as? ImageError)?.code == "internal"
      }
      #expect(pool.figures.underestimated == 1 && pool.figures.workersLost == 0)
      #expect(pool.memoryFigures.bytes == 0)
    }
  }

  @Test(arguments: [256 << 20, 512 << 20, 1 << 30, 64 << 30], [1, 2, 8])
  func `results of all workers fit into the memory of their jobs`(room: Int, cores: Int) throws {
    let plan = MemoryPlan(room: room, cores: cores)
    let configuration = ImagerPoolConfiguration(
      executable: "/", plan: plan, parts: plan.memoryTier + plan.responses)
    let most = try #require(configuration.maximumResultBytes)
    let whole = try #require(configuration.maximumWorkerMemory)
    // A job with the whole memory of a worker has its result twice for a moment.
    #expect(2 * most <= whole && most <= 512 << 20)
  }

  @Test func `where a worker may take all its memory, its limit stays`() async throws {
    var configuration = Self.configuration(part: Self.whole)
    let limits = Lock<[Int]>([])
    configuration.willSend = { pid in
      let found = Self.memoryLimits(of: pid)
      limits.withLock { $0 += found }
    }
    try await PoolSupport.withPool(configuration) { _ = try await $0.process(PoolSupport.job()) }
    #expect(limits.withLock { $0 } == [Self.whole, Self.whole])
  }

  @Test(arguments: sources)
  func `a source that needs more than admitted has the same result, with the whole memory`(
    suffix: String
  ) async throws {
    // Given: a job that is admitted with 2 MiB in all
    let job = try Self.job(Self.scene(suffix))
    let part = 512 << 20
    try await PoolSupport.withPool(Self.configuration(part: part, slack: 2 << 20 - part)) { pool in
      // When
      let digest = try await pool.process(job).report.digest
      // Then
      #expect(try await digest == Self.digest(job))
      #expect(pool.figures.underestimated == 1)
      #expect(pool.memoryFigures.peak == Self.whole && pool.memoryFigures.bytes == 0)
    }
  }

  @Test(arguments: ImageFormat.outputs)
  func `a result that needs more than admitted is the same with the whole memory`(
    format: ImageFormat
  ) async throws {
    let job = try Self.job(Self.scene(".jpg"), as: format)
    let part = 512 << 20
    try await PoolSupport.withPool(Self.configuration(part: part, slack: 2 << 20 - part)) { pool in
      let digest = try await pool.process(job).report.digest
      #expect(try await digest == Self.digest(job))
      // A GIF has the whole memory at once.
      #expect(pool.figures.underestimated == (format == .gif ? 0 : 1))
    }
  }

  @Test(arguments: [".png[palette]", ".gif"])
  func `a PNG of a source with a palette has the whole memory at once`(suffix: String) async throws
  {
    let job = try Self.job(Self.scene(suffix), as: .png)
    let part = 512 << 20
    try await PoolSupport.withPool(Self.configuration(part: part, slack: 2 << 20 - part)) { pool in
      let digest = try await pool.process(job).report.digest
      #expect(try await digest == Self.digest(job))
      #expect(pool.figures.underestimated == 0)
    }
  }

  @Test func `a damaged image is found damaged with the whole memory, and once`() async throws {
    let bytes = try Self.scene(".png")
    try await PoolSupport.withPool(Self.configuration(part: 64 << 20)) { pool in
      await #expect {
        try await pool.process(Self.job(bytes.dropLast(bytes.count / 2) + []))
      } throws: {
        ($0 as? ImageError)?.code == "undecodable"
      }
      #expect(pool.figures.underestimated == 1 && pool.memoryFigures.bytes == 0)
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test func `a job whose caller has left is not repeated`() async throws {
    // Given: a damaged image whose caller leaves when a worker gets it
    let bytes = try Self.scene(".png")
    var configuration = Self.configuration(part: 64 << 20)
    let sent = Lock(0)
    let caller = Lock<Task<Void, any Error>?>(nil)
    configuration.willSend = { _ in
      sent.withLock { $0 += 1 }
      caller.withLock { $0?.cancel() }
    }
    try await PoolSupport.withPool(configuration) { pool in
      let gate = Gate()
      let task = Task {
        await gate.pass()
        _ = try await pool.process(Self.job(bytes.dropLast(bytes.count / 2) + []))
      }
      caller.withLock { $0 = task }
      // When
      gate.open()
      await #expect(throws: (any Error).self) { try await task.value }
      try await eventually("the worker has no job") { pool.busyPID == nil }
      // Then
      #expect(sent.withLock { $0 } == 1)
      #expect(pool.figures.underestimated == 0)
    }
  }

  @Test(arguments: sources + [".jpg"])
  func `estimates and their slack suffice`(suffix: String) async throws {
    try await PoolSupport.withPool(Self.configuration(part: 1)) { pool in
      _ = try await pool.process(Self.job(Self.scene(suffix)))
      #expect(pool.figures.underestimated == 0)
    }
  }

  @Test func `a job that needs the whole memory waits for its turn`() async throws {
    // Given: a job whose worker is stopped when it has the whole memory
    // And: jobs that are admitted with nothing, and so need the whole memory
    var configuration = Self.configuration(part: 1 << 20, slack: -(64 << 20), workers: 4)
    configuration.expensiveJobMemory = 100 << 20
    let sent = Lock<[pid_t]>([])
    configuration.willSend = { pid in
      let count = sent.withLock {
        $0.append(pid)
        return $0.count
      }
      if count == 2 { kill(pid, SIGSTOP) }
    }
    try await PoolSupport.withPool(configuration) { pool in
      try await eventually("idle workers") { pool.idleWorkers == 4 }
      async let first = pool.process(PoolSupport.job())
      try await eventually("it is with a worker") { sent.withLock { $0.count } == 2 }
      let busy = sent.withLock { $0[1] }
      // When
      async let second = pool.process(Self.job(Self.scene(".jp2[tile-height=1024]")))
      try await eventually("it waits") {
        pool.figures.underestimated >= 1 && pool.figures.waiting == 1
      }
      // Then
      #expect(pool.figures.running == 1)
      kill(busy, SIGCONT)
      _ = try await (first, second)
      #expect(pool.memoryFigures.peak == Self.whole)
    }
  }
}
