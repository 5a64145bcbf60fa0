// BackgroundJobTests: jobs that run only while workers are idle, and give way to others.

import Core
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct BackgroundJobTests {
  private let now = ContinuousClock.now

  private func board(slots: Int) -> JobScheduler<String> {
    var board = JobScheduler<String>(slots: slots, limit: 9)
    for _ in 0..<slots { board.enter() }
    return board
  }

  private func job(_ next: JobScheduler<String>.Next) -> UInt64? {
    if case .job(let id, _) = next { id } else { nil }
  }

  @Test(arguments: [1, 2, 3, 4, 8])
  func `a background job starts when it leaves half of the slots idle`(slots: Int) {
    var board = board(slots: slots)
    _ = board.submitBackground(1, job: "b")
    for slot in 0..<slots / 2 {
      #expect(job(board.next(slot: slot, isReady: true, now: now)) == nil)
    }
    #expect(job(board.next(slot: slots / 2, isReady: true, now: now)) == 1)
    #expect(board.waitingCount == 0 && board.runningBackground == 1)
    #expect(board.finish(1) == "b")
  }

  @Test func `a background job wakes an idle slot, and only one runs at a time`() {
    var board = board(slots: 4)
    for slot in 0..<4 { _ = board.next(slot: slot, isReady: true, now: now) }
    guard case .next(wake: 3) = board.submitBackground(1, job: "a") else {
      Issue.record("no slot is woken")
      return
    }
    #expect(job(board.next(slot: 3, isReady: true, now: now)) == 1)
    guard case .waits = board.submitBackground(2, job: "b") else {
      Issue.record("two at a time")
      return
    }
    #expect(job(board.next(slot: 2, isReady: true, now: now)) == nil)
    #expect(board.finish(1) == "a")
    #expect(job(board.next(slot: 3, isReady: true, now: now)) == 2)
  }

  @Test func `with cores for one job, a background job takes no place of another`() {
    // Given
    var board = board(slots: 2)
    for slot in 0..<2 { _ = board.next(slot: slot, isReady: true, now: now) }
    #expect(board.setWidth(1) == [])
    _ = board.submitBackground(1, job: "background")
    #expect(job(board.next(slot: 1, isReady: true, now: now)) == 1)
    // When
    guard case .next(wake: 0) = board.submit(2, job: "a", priority: .low) else {
      Issue.record("it waits")
      return
    }
    // Then
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 2)
    // One more waits for that one, and has the background job cancelled.
    guard case .waits = board.submit(3, job: "b", priority: .low) else {
      Issue.record("two run at a time")
      return
    }
    #expect(board.backgroundInTheWay == 1)
  }

  @Test func `other jobs go first, and the running background job is in their way`() {
    var board = board(slots: 1)
    _ = board.submitBackground(1, job: "background")
    _ = board.submit(2, job: "client", priority: .low)
    #expect(board.backgroundInTheWay == nil)
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 2)
    #expect(board.finish(2) == "client")
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 1)
    #expect(board.backgroundInTheWay == nil)
    _ = board.submit(3, job: "client", priority: .low)
    #expect(board.backgroundInTheWay == 1)
    let cancelled = board.cancel(1)
    #expect(cancelled?.job == "background" && cancelled?.wake == 0)
    #expect(board.backgroundInTheWay == nil, "it is answered once")
  }

  @Test func `an expensive background job is in the way of a job that waits for memory`() {
    // Given
    var board = board(slots: 2)
    for slot in 0..<2 { _ = board.next(slot: slot, isReady: true, now: now) }
    _ = board.submitBackground(1, job: "background")
    #expect(job(board.next(slot: 1, isReady: true, now: now)) == 1)
    let continues = board.takesLong(1, bytes: 7)
    #expect(continues)
    _ = board.submit(2, job: "client", priority: .normal)
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 2)
    #expect(board.backgroundInTheWay == nil)
    // When
    let isQueued = !board.takesLong(2, bytes: 7)
    // Then
    #expect(isQueued && board.backgroundInTheWay == 1)
    #expect(board.cancel(1)?.wake == 1)
    #expect(board.finish(1) == nil)
    #expect(job(board.next(slot: 1, isReady: true, now: now)) == 2)
  }

  @Test func `an expensive background job goes on alone and waits for others`() {
    var board = board(slots: 1)
    _ = board.submitBackground(1, job: "a")
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 1)
    let goesOn = board.takesLong(1, bytes: 7)
    #expect(goesOn && board.bytesOfLong == 7)
    #expect(board.finish(1) == "a")
    _ = board.submitBackground(2, job: "b")
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 2)
    _ = board.submit(3, job: "c", priority: .normal)
    let waits = !board.takesLong(2, bytes: 7)
    #expect(waits)
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 3)
    #expect(board.finish(3) == "c")
    #expect(job(board.next(slot: 0, isReady: true, now: now)) == 2)
  }

  @Test(arguments: 0..<20 as Range<UInt64>)
  func `random events never let a background job start before another, and hand each back once`(
    seed: UInt64
  ) {
    var random = SeededGenerator(seed: seed)
    let slots = Int.random(in: 1...5, using: &random)
    var board = JobScheduler<UInt64>(slots: slots, limit: 4)
    for _ in 0..<slots { board.enter() }
    var last: UInt64 = 0
    var background: Set<UInt64> = []
    var admitted: Set<UInt64> = []
    var running: [Int: UInt64] = [:]
    var started = 0
    func isHandedBack(_ id: UInt64?) { if let id { #expect(admitted.remove(id) != nil) } }
    for _ in 0..<3_000 {
      let slot = Int.random(in: 0..<slots, using: &random)
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<2:
        last += 1
        if case .refused = board.submit(last, job: last, priority: .normal) { continue }
        admitted.insert(last)
      case 2..<4:
        last += 1
        if case .refused = board.submitBackground(last, job: last) { continue }
        admitted.insert(last)
        background.insert(last)
      case 4: isHandedBack(board.cancel(.random(in: 0...last, using: &random))?.job)
      case 5:
        guard let id = running[slot], board.bytesOfLong(id) == nil else { continue }
        if !board.takesLong(id, bytes: 1) { running[slot] = nil }
      default:
        if let id = running.removeValue(forKey: slot) {
          isHandedBack(board.finish(id))
          continue
        }
        let waiting = board.waitingCount
        guard case .job(let id, _) = board.next(slot: slot, isReady: true, now: now) else {
          continue
        }
        running[slot] = id
        guard background.contains(id) else { continue }
        started += 1
        #expect(waiting == 0 && board.idle.count >= slots / 2)
        #expect(running.values.count { background.contains($0) && admitted.contains($0) } == 1)
      }
    }
    #expect(started > 0)
    // When the pool stops
    board.stop(at: now + .seconds(1))
    for job in board.removeBackground() { isHandedBack(job) }
    for (_, id) in running { isHandedBack(board.finish(id)) }
    while case .job(let id, _) = board.next(slot: 0, isReady: true, now: now) {
      isHandedBack(board.finish(id))
    }
    #expect(admitted.isEmpty)
  }
}

/// Serialized, because the tests start processes.
@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct RecompressingPoolTests {
  private static func job(_ bytes: [UInt8], as format: ImageFormat) throws -> ImageJob {
    var transform = Transform()
    transform.output.format = format
    return ImageJob(
      file: try PoolSupport.file(of: bytes), transform: transform, density: 1,
      isRecompression: true, isBackground: true)
  }

  @Test func `a sealed worker recompresses JPEG and PNG`() async throws {
    let jpeg = try TestImages.jpeg(width: 300, height: 200)
    let png = PoolSupport.png(width: 200, height: 100)
    try await PoolSupport.withPool { pool in
      for (bytes, format) in [(jpeg, ImageFormat.jpeg), (png, .png)] {
        let result = try await pool.process(try Self.job(bytes, as: format))
        let smaller = try PoolSupport.bytes(of: result.body)
        #expect(smaller.count < bytes.count)
        #expect(try Pixels(decoding: smaller).values == Pixels(decoding: bytes).values)
        #expect(result.rendered?.format == format)
      }
      await #expect(throws: ImageError.self) {
        _ = try await pool.process(try Self.job(Array(jpeg[..<400]), as: .jpeg))
      }
    }
  }

  @Test func `a job of a client cancels the background job on the only worker`() async throws {
    // Given: a PNG that takes seconds
    let png = try TestImages.encode(.scene(width: 400, height: 400), as: ".png", zoom: 6)
    try await PoolSupport.withPool { pool in
      let background = Task { try await pool.process(try Self.job(png, as: .png)) }
      try await eventually { pool.busyPID != nil }
      // When
      let result = try await pool.process(try PoolSupport.job())
      // Then
      #expect(result.rendered?.size == PixelSize(width: 64, height: 48))
      await #expect(throws: ImageError.cancelled) { _ = try await background.value }
    }
  }

  @Test func `a stop answers a running and a waiting background job`() async throws {
    let png = try TestImages.encode(.scene(width: 400, height: 400), as: ".png", zoom: 6)
    try await PoolSupport.withPool { pool in
      let jobs = try (0..<2).map { _ in
        let job = try Self.job(png, as: .png)
        return Task { try await pool.process(job) }
      }
      try await eventually { pool.busyPID != nil }
      await pool.shutDown(within: .seconds(30))
      for job in jobs {
        await #expect(throws: ImageError.self) { _ = try await job.value }
      }
    }
  }
}
