// WorkerReplacementTests: when a worker is replaced, what ends with it, and jobs while none starts.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .serialized, .timeLimit(.minutes(1))) struct WorkerReplacementTests {
  private static let vector = Array(
    "<svg xmlns='http://www.w3.org/2000/svg' width='8' height='8'><rect width='8' height='8'/></svg>"
      .utf8)

  private func vectorJob() throws -> ImageJob {
    ImageJob(file: try PoolSupport.file(of: Self.vector), transform: Transform(), density: 1)
  }

  private func job(of client: String?) throws -> ImageJob {
    let png = PoolSupport.png(width: 8, height: 8)
    return ImageJob(
      file: try PoolSupport.file(of: png), transform: Transform(), density: 1, client: client)
  }

  @Test func `a worker is replaced after enough jobs with risky formats`() async throws {
    var configuration = PoolSupport.configuration()
    configuration.maximumRiskyJobs = 3
    try await PoolSupport.withPool(configuration) { pool in
      // Given a worker that has had fewer risky jobs, and many others
      let first = pool.pids
      for _ in 0..<2 { _ = try await pool.process(vectorJob()) }
      for _ in 0..<8 { _ = try await pool.process(PoolSupport.job()) }
      #expect(pool.pids == first)
      #expect(pool.figures.workersRetired == 0)
      // When
      _ = try await pool.process(vectorJob())
      // Then
      try await eventually("a new worker") { pool.figures.workersRetired == 1 }
      try await eventually("it is ready") { pool.pids.count == 1 && pool.pids != first }
      _ = try await pool.process(vectorJob())
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test func `a worker has jobs of one client only`() async throws {
    try await PoolSupport.withPool { pool in
      // Given
      var pids: [pid_t] = []
      // When
      for client in [nil, "a", "a", "b", nil, nil] {
        _ = try await pool.process(job(of: client))
        pids += pool.pids
      }
      // Then
      try #require(pids.count == 6)
      let first = pids[0]
      #expect(pids[1] != first)
      #expect(pids[2] == pids[1])
      #expect(pids[3] != pids[2])
      #expect(pids[4] != pids[3])
      #expect(pids[5] == pids[4])
      #expect(pool.figures.workersRetired == 3)
      #expect(pool.figures.workersLost == 0)
    }
  }

  @Test func `large and seldom tested decoders are risky, and so is the unknown`() throws {
    let png = PoolSupport.png(width: 8, height: 8)
    #expect(!SourceHead.isRisky(try PoolSupport.file(of: png)))
    #expect(SourceHead.isRisky(try PoolSupport.file(of: Self.vector)))
    #expect(SourceHead.isRisky(try PoolSupport.file(of: TestImages.avif(width: 16, height: 16))))
    #expect(SourceHead.isRisky(try PoolSupport.file(of: [1, 2, 3])))
    // At its offset in a larger file.
    let whole = try PoolSupport.file(of: [UInt8](repeating: 0, count: 5_000) + png)
    let region = FileRegion(owning: dup(whole.descriptor), offset: 5_000, count: png.count)
    #expect(!SourceHead.isRisky(region))
  }

  /// Returns settings for a worker whose start fails once for each file named `fail-…` in the
  /// folder, and always while it has a file named `broken`.
  private func configuration(in folder: TemporaryFolder) throws -> ImagerPoolConfiguration {
    let script = """
      #!/bin/sh
      [ -e '\(folder.path)/broken' ] && exit 1
      for file in '\(folder.path)'/fail-*; do [ -e "$file" ] && rm "$file" && exit 1; done
      exec '\(PoolSupport.executable)' "$@"

      """
    var configuration = PoolSupport.configuration()
    configuration.executable = try folder.writeProgram("worker", script: script)
    return configuration
  }

  @Test(arguments: [true, false])
  func `a job waits for a worker whose start fails`(isIdle: Bool) async throws {
    // Given: a worker that dies with a job or without one, and two starts that fail
    let folder = try TemporaryFolder()
    var configuration = try configuration(in: folder)
    let first = FirstWorker()
    if !isIdle { configuration.willSend = { pid in if first.isFirst() { kill(pid, SIGKILL) } } }
    try await PoolSupport.withPool(configuration) { pool in
      for number in 1...2 { try folder.write("fail-\(number)", bytes: []) }
      if isIdle {
        let pid = try #require(pool.pids.first)
        kill(pid, SIGKILL)
        try await eventually("it is lost") { pool.pids.isEmpty }
      }
      // When
      let image = try await pool.process(PoolSupport.job(width: 20))
      // Then
      #expect(image.rendered?.size.width == 20)
      #expect(pool.figures.failed == [:])
      #expect(TemporaryFolder.files(below: folder.path) == [folder.path + "/worker"])
    }
  }

  @Test func `jobs fail while no worker starts, and succeed when one does again`() async throws {
    let folder = try TemporaryFolder()
    try await PoolSupport.withPool(configuration(in: folder)) { pool in
      // Given
      try folder.write("broken", bytes: [])
      let pid = try #require(pool.pids.first)
      kill(pid, SIGKILL)
      try await eventually("it is lost") { pool.pids.isEmpty }
      // When
      var failure: ImageError?
      do { _ = try await pool.process(PoolSupport.job()) } catch { failure = error as? ImageError }
      // Then
      guard case .internal(let detail) = failure else {
        Issue.record("\(String(describing: failure))")
        return
      }
      #expect(detail.contains("exit status 1"))
      // When
      TemporaryFolder.remove(folder.path + "/broken")
      // Then
      try await eventually("a worker starts") { pool.pids.count == 1 }
      _ = try await pool.process(PoolSupport.job())
    }
  }

  @Test func `failed starts back off exponentially until one succeeds`() {
    let now = ContinuousClock.now
    var backoff = RespawnBackoff()
    #expect(backoff.allows(now))
    var waits: [Duration] = []
    for failures in 1...20 {
      backoff.failed(at: now)
      #expect(backoff.isExhausted == (failures >= 4))
      waits.append(now.duration(to: backoff.notBefore ?? now))
    }
    #expect(waits.prefix(3) == [.milliseconds(100), .milliseconds(200), .milliseconds(400)])
    #expect(waits.last == .seconds(5))
    #expect(!backoff.allows(now) && backoff.allows(now + .seconds(5)))
    backoff.succeeded()
    #expect(backoff.allows(now) && !backoff.isExhausted)
  }

  @Test func `what a worker has started ends with it`() async throws {
    // Given a worker with a session of its own, as every worker has, and a process in it
    let folder = try TemporaryFolder()
    let note = folder.path + "/note"
    let script = "#!/bin/sh\nexec setsid sh -c 'sleep 60 & echo $! > \(note); exec sleep 60'\n"
    let program = try folder.writeProgram("worker", script: script)
    let worker = try WorkerProcess(ImagerPoolConfiguration(executable: program))
    try await eventually("it has started one") {
      ((try? String(contentsOfFile: note, encoding: .utf8)) ?? "").hasSuffix("\n")
    }
    let text = try String(contentsOfFile: note, encoding: .utf8)
    let started = try #require(pid_t(text.dropLast()))
    // When
    worker.kill()
    _ = WorkerProcess.reap(worker.pid, within: .seconds(10))
    // Then
    try await eventually("its end") { !Self.runs(started) }
  }

  /// Whether a process exists and is no zombie (proc_pid_stat(5)).
  private static func runs(_ pid: pid_t) -> Bool {
    guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
      let state = text.split(separator: ")").last?.split(separator: " ").first
    else { return false }
    return state != "Z" && state != "X"
  }
}
