// ImagerPoolTests: real workers, healthy and failing.

import Core
import Glibc
import ImagingPool
import TestSupport
import Testing

/// Serialized, because each test starts its own processes and two cores are soon busy.
@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct ImagerPoolTests {
  @Test func `a processed image is returned with its metadata`() async throws {
    try await PoolSupport.withPool { pool in
      // When
      var transform = Transform()
      transform.format = .png
      let image = try await pool.process(PoolSupport.job(width: 64, height: 48, to: transform))
      // Then
      #expect(image.rendered?.format == .png)
      #expect(image.rendered?.size == PixelSize(width: 64, height: 48))
      #expect(image.rendered?.frames == 1)
      #expect(image.report.digest.count == 32)
      #expect(image.report.timings.queue != nil)
      #expect(try PoolSupport.bytes(of: image.body).starts(with: [0x89, 0x50, 0x4e, 0x47]))
      #expect(pool.figures.succeeded == 1)
      #expect(pool.figures.running == 0)
      #expect(pool.figures.latency.count == 1)
      #expect(pool.figures.residentBytes > 1 << 20)
    }
  }

  @Test(arguments: [ImageFormat.heic, .avif])
  func `a worker loads a libvips module only when an image needs it`(_ format: ImageFormat)
    async throws
  {
    let image =
      format == .heic
      ? try TestImages.heic(width: 64, height: 48) : try TestImages.avif(width: 64, height: 48)
    let job = ImageJob(
      file: try PoolSupport.file(of: image), transform: Transform(), density: 1)
    var configuration = PoolSupport.configuration()
    configuration.settings.sandbox = .off
    try await PoolSupport.withPool(configuration) { pool in
      // Given
      let pid = try #require(pool.pids.first)
      _ = try await pool.process(PoolSupport.job())
      #expect(try PoolSupport.modules(of: pid) == [])
      // When
      let image = try await pool.process(job)
      // Then
      #expect(image.rendered?.size == PixelSize(width: 64, height: 48))
      #expect(try PoolSupport.modules(of: pid) == ["vips-heif.so"])
    }
  }

  @Test(.ifClosedProcessesAreVisible, .ifSealable)
  func `a sealed worker has loaded the modules before its first job`() async throws {
    try await PoolSupport.withPool { pool in
      let pid = try #require(pool.pids.first)
      #expect(try PoolSupport.modules(of: pid) == ["vips-heif.so", "vips-jxl.so"])
    }
  }

  @Test func `an image inside a larger file is read at its offset`() async throws {
    try await PoolSupport.withPool { pool in
      let png = PoolSupport.png(width: 10, height: 20)
      let padding = [UInt8](repeating: 0xff, count: 5_000)
      let whole = try PoolSupport.file(of: padding + png + padding)
      let region = FileRegion(
        owning: dup(whole.descriptor), offset: padding.count, count: png.count)
      let image = try await pool.process(
        ImageJob(file: region, transform: Transform(), density: 1))
      #expect(image.rendered?.size == PixelSize(width: 10, height: 20))
    }
  }

  @Test func `extreme sizes and densities do not cost a worker`() async throws {
    // Given the smallest scale and the largest box, which yield the smallest density and the
    // longest side
    var small = Transform()
    var large = Transform()
    small.scale = 0.000_000_1
    large.width = 65_535
    large.enlarge = true
    large.limitBytes = 4_000
    try await PoolSupport.withPool { pool in
      // When
      let least = try await pool.process(PoolSupport.job(to: small)).rendered
      let maximum = try await pool.process(PoolSupport.job(width: 1, height: 300, to: large))
        .rendered
      // Then
      #expect(least?.size == PixelSize(width: 1, height: 1) && least?.density ?? 0 > 0)
      #expect(maximum?.scaledDownFrom == PixelSize(width: 65_535, height: 19_660_500))
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test(.disabled(if: TestBuild.isThreadSanitized, "a sanitizer's shadow memory has no bound"))
  func `an AVIF encoder without memory is an internal error`() async throws {
    // Given: libaom gets no memory, and libvips reports success. It encodes chroma of full
    // resolution; AVIFEncoder takes less memory than the estimate.
    var configuration = PoolSupport.configuration()
    configuration.maximumWorkerMemory = 384 << 20
    var transform = Transform()
    transform.format = .avif
    transform.quality = 90
    let job = ImageJob(
      file: try PoolSupport.file(of: TestImages.jpeg(width: 3_900, height: 3_900)),
      transform: transform, density: 1)
    try await PoolSupport.withPool(configuration) { pool in
      // When, then: imaging fails; there is no image of 201 bytes, and the source is not at fault
      await #expect {
        try await pool.process(job)
      } throws: { ($0 as? ImageError)?.code == "internal" }
    }
  }

  @Test func `an invalid image is an error, and its worker continues`() async throws {
    try await PoolSupport.withPool { pool in
      let pids = pool.pids
      let text = try PoolSupport.file(
        of: Array("2 2\n1 2\n3 4, and more than twenty-four bytes".utf8))
      let job = ImageJob(file: text, transform: Transform(), density: 1)
      await #expect { try await pool.process(job) } throws: {
        ($0 as? ImageError)?.code == "unsupported_format"
      }
      let tooLong = FileRegion(owning: dup(text.descriptor), offset: 10, count: 1 << 20)
      await #expect {
        try await pool.process(
          ImageJob(file: tooLong, transform: Transform(), density: 1))
      } throws: { ($0 as? ImageError)?.code == "internal" }
      _ = try await pool.process(PoolSupport.job())
      #expect(pool.pids == pids)
      #expect(pool.figures.failed == ["unsupported_format": 1, "internal": 1])
    }
  }

  @Test func `the limits are sent with each job`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.limits.maximumPixels = 1_000
    try await PoolSupport.withPool(configuration) { pool in
      await #expect(throws: ImageError.tooManyPixels(pixels: 64 * 48, limit: 1_000)) {
        try await pool.process(PoolSupport.job())
      }
    }
  }

  @Test func `concurrent jobs are all answered by several workers`() async throws {
    try await PoolSupport.withPool(PoolSupport.configuration(workers: 3)) { pool in
      try await withThrowingTaskGroup(of: Void.self) { group in
        for width in 1...200 {
          group.addTask {
            let job = try PoolSupport.job(width: width, height: 9)
            let image = try await pool.process(job)
            #expect(image.rendered?.size == PixelSize(width: width, height: 9))
          }
        }
        try await group.waitForAll()
      }
      #expect(pool.figures.succeeded == 200)
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test func `a job whose worker is killed is run again`() async throws {
    // Given: a worker that stops before it reads its job
    var configuration = PoolSupport.configuration()
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    try await PoolSupport.withPool(configuration) { pool in
      async let image = pool.process(PoolSupport.job(width: 33))
      try await eventually("the job is with a worker") { pool.busyPID != nil }
      let victim = try #require(pool.busyPID)
      // When
      kill(victim, SIGKILL)
      // Then
      #expect(try await image.rendered?.size.width == 33)
      #expect(pool.figures.workersLost == 1)
      #expect(!pool.pids.contains(victim))
      try await eventually("its end") { !PoolSupport.exists(victim) }
    }
  }

  @Test func `an idle worker that dies is replaced before the next job`() async throws {
    try await PoolSupport.withPool { pool in
      _ = try await pool.process(PoolSupport.job())
      let victim = try #require(pool.pids.first)
      kill(victim, SIGKILL)
      try await eventually("a new worker") {
        pool.pids.first.map { $0 != victim } ?? false
      }
      _ = try await pool.process(PoolSupport.job())
      try await eventually("its end") { !PoolSupport.exists(victim) }
    }
  }

  @Test func `at the deadline the worker is killed and replaced`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.jobDeadline = .milliseconds(100)
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    try await PoolSupport.withPool(configuration) { pool in
      let victim = try #require(pool.pids.first)
      await #expect(throws: ImageError.imagingTimeout) { try await pool.process(PoolSupport.job()) }
      try await eventually("its end") { !PoolSupport.exists(victim) }
      try await eventually("a new worker") { pool.pids.count == 1 }
      #expect(pool.figures.workersLost == 1)
    }
  }

  @Test func `a full queue refuses jobs, and a cancelled job leaves it at once`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.queueLimit = 1
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    try await PoolSupport.withPool(configuration) { pool in
      // Given: one job with the worker, one in the queue
      let running = Task { try await pool.process(PoolSupport.job()) }
      try await eventually("running") { pool.busyPID != nil }
      let waiting = Task { try await pool.process(PoolSupport.job()) }
      try await eventually("waiting") { pool.figures.waiting == 1 }
      // Then: a third one is refused
      await #expect(throws: ImageError.overloaded(queue: "imaging", retryAfter: 1)) {
        try await pool.process(PoolSupport.job())
      }
      // When: the queued one is cancelled, there is room
      waiting.cancel()
      await #expect(throws: ImageError.cancelled) { try await waiting.value }
      #expect(pool.figures.waiting == 0)
      let next = Task { try await pool.process(PoolSupport.job(width: 7)) }
      try await eventually("waiting") { pool.figures.waiting == 1 }
      kill(try #require(pool.busyPID), SIGCONT)
      _ = try await running.value
      #expect(try await next.value.rendered?.size.width == 7)
      #expect(pool.figures.cancelled == 1)
    }
  }

  @Test func `a worker that continues a cancelled job is killed after the grace period`()
    async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.cancelGrace = .milliseconds(50)
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    try await PoolSupport.withPool(configuration) { pool in
      let task = Task { try await pool.process(PoolSupport.job()) }
      try await eventually("running") { pool.busyPID != nil }
      let victim = try #require(pool.busyPID)
      task.cancel()
      await #expect(throws: ImageError.cancelled) { try await task.value }
      try await eventually("a new worker") {
        pool.pids.first.map { $0 != victim } ?? false
      }
      try await eventually("its end") { !PoolSupport.exists(victim) }
      #expect(pool.figures.running == 0)
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test func `a cancelled job that ends within the grace period keeps its worker`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.cancelGrace = .seconds(20)
    let first = FirstWorker()
    configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGSTOP) } }
    try await PoolSupport.withPool(configuration) { pool in
      let task = Task { try await pool.process(PoolSupport.job()) }
      try await eventually("running") { pool.busyPID != nil }
      let worker = try #require(pool.busyPID)
      task.cancel()
      await #expect(throws: ImageError.cancelled) { try await task.value }
      kill(worker, SIGCONT)
      _ = try await pool.process(PoolSupport.job())
      #expect(pool.pids == [worker])
    }
  }

  @Test func `a cancelled task gets no image`() async throws {
    try await PoolSupport.withPool { pool in
      let task = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await pool.process(PoolSupport.job())
      }
      await #expect(throws: ImageError.cancelled) { try await task.value }
    }
  }

  @Test func `a worker is retired after its maximum number of jobs, and no request is lost`()
    async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.maximumJobsPerWorker = 3
    try await PoolSupport.withPool(configuration) { pool in
      for _ in 0..<3 { _ = try await pool.process(PoolSupport.job()) }
      try await eventually("a retirement") { pool.figures.workersRetired == 1 }
      for _ in 0..<50 { _ = try await pool.process(PoolSupport.job()) }
      #expect(pool.figures.succeeded == 53)
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test func `a worker that is never idle is retired as well`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.maximumJobsPerWorker = 1
    configuration.queueLimit = 1_000
    try await PoolSupport.withPool(configuration) { pool in
      // Given: always a job in the queue
      let job = try PoolSupport.job()
      let deadline = ContinuousClock.now + .seconds(40)
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<4 {
          group.addTask {
            while pool.figures.workersRetired < 3 && .now < deadline {
              _ = try await pool.process(job)
            }
          }
        }
        try await group.waitForAll()
      }
      // Then
      #expect(pool.figures.workersRetired >= 3)
      #expect(pool.figures.failed == [:])
    }
  }

  @Test func `a worker that holds too much memory is retired`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.retireAboveResidentBytes = 1
    try await PoolSupport.withPool(configuration) { pool in
      _ = try await pool.process(PoolSupport.job())
      try await eventually("a retirement") { pool.figures.workersRetired == 1 }
      _ = try await pool.process(PoolSupport.job())
    }
  }
}

/// Returns `true` for the first `count` calls.
final class FirstWorker: Sendable {
  private let left: Gauge
  init(count: Int = 1) { left = Gauge(count) }

  func isFirst() -> Bool {
    // Only the thread of the only worker's slot calls this.
    guard left.value > 0 else { return false }
    left.add(-1)
    return true
  }
}
