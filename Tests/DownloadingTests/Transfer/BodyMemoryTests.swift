// BodyMemoryTests: the memory for bodies, from their first byte to their last use.

import Core
import Downloading
import TestSupport
import Testing

@Suite(.onOwnThreads) struct BodyMemoryTests {
  private let body = [UInt8](repeating: 7, count: 50_000)
  private let origin: Origin

  init() throws { origin = try Origin() }

  /// Creates a downloader with memory for one of two bodies.
  private func makeDownloader(
    _ change: (inout DownloaderConfiguration) -> Void = { _ in }
  ) throws -> Downloader {
    try DownloadingTests.makeDownloader {
      $0.maximumBytesInFlight = 60_000
      change(&$0)
    }
  }

  @Test func `a body waits until the memory of another is free, which is after its last use`()
    async throws
  {
    // Given a complete body that is in use
    origin.serve("/first", bytes: body)
    origin.serve("/second", bytes: body)
    let downloader = try makeDownloader()
    var first: Download? = try await downloader.load(origin.url("/first"))
    // When
    async let second = downloader.load(origin.url("/second"))
    try await eventually("it waits") { downloader.figures.waitingForMemory == 1 }
    #expect(first?.file.count == body.count)
    first = nil
    // Then
    let bytes = try ImageBytes(contentsOf: try await second.file)
    #expect(bytes.withUnsafeBytes { Array($0) } == body)
    #expect(downloader.figures.waitingForMemory == 0)
  }

  @Test func `bodies get memory in the order of their heads, and a cancelled one gives way`()
    async throws
  {
    // Given
    for path in ["/first", "/gone", "/large", "/small"] {
      origin.serve(path, bytes: path == "/small" ? [1] : body)
    }
    let downloader = try makeDownloader()
    var first: Download? = try await downloader.load(origin.url("/first"))
    let gone = Task { try await downloader.load(origin.url("/gone")) }
    try await eventually("one waits") { downloader.figures.waitingForMemory == 1 }
    let large = Task { try await downloader.load(origin.url("/large")) }
    try await eventually("two wait") { downloader.figures.waitingForMemory == 2 }
    let small = Task { try await downloader.load(origin.url("/small")) }
    // When a small one would fit, then it waits behind the others
    try await eventually("three wait") { downloader.figures.waitingForMemory == 3 }
    gone.cancel()
    try await eventually("two wait") { downloader.figures.waitingForMemory == 2 }
    withExtendedLifetime(first) {}
    first = nil
    // Then
    #expect(try await large.value.file.count == body.count)
    #expect(try await small.value.file.count == 1)
    await #expect(throws: ImageError.cancelled) { try await gone.value }
  }

  @Test func `a body that waits too long is overloaded, and its origin is not to blame`()
    async throws
  {
    origin.serve("/first", bytes: body)
    origin.serve("/second", bytes: body)
    let downloader = try makeDownloader {
      $0.timeout = .seconds(2)
      $0.lowSpeedTime = .seconds(60)
      $0.breakerThreshold = 1
    }
    let first = try await downloader.load(origin.url("/first"))
    for _ in 0..<3 {
      let failure = await downloader.failure(of: origin.url("/second"))
      #expect(failure?.code == "overloaded")
      #expect(failure?.decidingKey == "memory.budget")
    }
    #expect(downloader.figures.circuitsOpen == 0)
    #expect(first.file.count == body.count)
  }

  @Test func `a body that waits for memory does not count as slow`() async throws {
    // Given
    origin.serve("/first", bytes: body)
    origin.serve("/second", bytes: body)
    let downloader = try makeDownloader { $0.pace.window = .milliseconds(20) }
    var first: Download? = try await downloader.load(origin.url("/first"))
    let second = Task { try await downloader.load(origin.url("/second")) }
    // When many windows pass
    try await eventually("it waits") { downloader.figures.waitingForMemory == 1 }
    let end = ContinuousClock.now + .milliseconds(300)
    try await eventually("the windows are over") {
      #expect(downloader.figures.slow == 0)
      return .now > end
    }
    withExtendedLifetime(first) {}
    first = nil
    // Then
    #expect(try await second.value.file.count == body.count)
  }

  @Test func `a body that will not be complete in time gives its memory to one that waits`()
    async throws
  {
    // Given a body that has the memory, and stops
    let gate = Gate()
    origin.route("/held", to: .ok(body, holdingAfter: 10, at: gate))
    origin.serve("/second", bytes: body)
    let downloader = try makeDownloader { $0.pace.window = .milliseconds(50) }
    let held = Task { await downloader.failure(of: origin.url("/held")) }
    try await eventually("it is received") { downloader.downloads().first?.received == 10 }
    // When, then
    #expect(try await downloader.load(origin.url("/second")).file.count == body.count)
    #expect(await held.value?.code == "overloaded")
    gate.open()
  }

  @Test func `a body above all memory is too large at once`() async throws {
    origin.serve("/a", bytes: [UInt8](repeating: 1, count: 60_001))
    let failure = try await makeDownloader().failure(of: origin.url("/a"))
    #expect(failure?.code == "source_too_large")
    #expect(failure?.decidingKey == "memory.budget")
  }

  @Test func `a body of unknown length fails where memory ends`() async throws {
    // Given
    origin.serve("/first", bytes: body)
    origin.route("/chunked", to: .chunked(body, size: 5_000))
    let downloader = try makeDownloader()
    var first: Download? = try await downloader.load(origin.url("/first"))
    // When
    let failure = await downloader.failure(of: origin.url("/chunked"))
    // Then
    #expect(failure?.code == "overloaded")
    #expect(failure?.decidingKey == "memory.budget")
    withExtendedLifetime(first) {}
    first = nil
    #expect(try await downloader.load(origin.url("/chunked")).file.count == body.count)
  }

  @Test func `failed and cancelled bodies return their memory`() async throws {
    // Given
    let gate = Gate()
    origin.route("/cut", to: .truncated(body, declaring: 60_000))
    origin.route("/held", to: .ok(body, holdingAfter: 40_000, at: gate))
    origin.serve("/whole", bytes: body)
    let downloader = try makeDownloader()
    // When
    for _ in 0..<3 {
      _ = await downloader.failure(of: origin.url("/cut"))
      let held = Task { try await downloader.load(origin.url("/held")) }
      try await eventually("it is received") { downloader.downloads().first?.received == 40_000 }
      held.cancel()
      _ = try? await held.value
    }
    // Then
    #expect(try await downloader.load(origin.url("/whole")).file.count == body.count)
    gate.open()
  }

  @Test func `many bodies never take more than there is, and all arrive`() async throws {
    // Given memory for three of forty
    let memory = ByteBudget(limit: 160_000)
    var configuration = DownloaderConfiguration()
    configuration.allowedNetworks = [try #require(CIDR("127.0.0.0/8"))]
    configuration.timeout = .seconds(60)
    configuration.limitPerHost = 20
    let downloader = try Downloader(configuration: configuration, bodies: memory, log: .silent)
    for number in 0..<40 {
      origin.serve("/\(number)", bytes: [UInt8](repeating: UInt8(number), count: 50_000))
    }
    // When
    try await withThrowingTaskGroup(of: Void.self) { group in
      for number in 0..<40 {
        group.addTask {
          let download = try await downloader.load(origin.url("/\(number)"))
          let bytes = try ImageBytes(contentsOf: download.file, mayMap: false)
          #expect(bytes.withUnsafeBytes { $0.count == 50_000 && $0.last == UInt8(number) })
        }
      }
      try await group.waitForAll()
    }
    // Then
    #expect(memory.peak <= memory.limit && memory.peak >= 100_000)
    try await eventually("all is returned") { memory.used == 0 }
  }

  @Test func `a body counts until its last reader ends`() async throws {
    // Given much memory, so that bodies are offered
    let memory = ByteBudget(limit: 200_000)
    var configuration = DownloaderConfiguration()
    configuration.allowedNetworks = [try #require(CIDR("127.0.0.0/8"))]
    let downloader = try Downloader(configuration: configuration, bodies: memory, log: .silent)
    origin.serve("/a", bytes: body)
    let offered = Lock<(any StreamingBody)?>(nil)
    // When
    let request = LoadRequest(
      url: try SourceURL(parsing: origin.url("/a")),
      onBody: { body in offered.withLock { $0 = body } })
    _ = try await downloader.load(request)
    // Then
    #expect(memory.used == body.count)
    offered.withLock { $0 = nil }
    try await eventually("all is returned") { memory.used == 0 }
    // And with half of the memory in use, none is offered
    let held = memory.lease(101_000)
    _ = try await downloader.load(request)
    withExtendedLifetime(held) { #expect(offered.withLock { $0 == nil }) }
  }

  @Test func `a coded body that waits for memory is decoded from its first byte`() async throws {
    // Given a complete body that is in use, another that waits, and a coded one behind it
    let small = Array(body.prefix(1_000))
    let downloader = try makeDownloader()
    origin.serve("/first", bytes: body)
    origin.serve("/second", bytes: body)
    var first: Download? = try await downloader.load(origin.url("/first"))
    let second = Task { _ = try await downloader.load(origin.url("/second")) }
    try await eventually("one waits") { downloader.figures.waitingForMemory == 1 }
    let tasks = TestCoding.allCases.map { coding in
      let coded = coding.encode(small)
      let fields = [coding.field, DigestField.contentDigest.line(for: coded)]
      origin.serve("/\(coding)", bytes: coded, headers: fields)
      return Task { try await downloader.load(origin.url("/\(coding)")).file.bytes }
    }
    try await eventually("all wait") {
      downloader.figures.waitingForMemory == 1 + TestCoding.allCases.count
    }
    #expect(first?.file.count == body.count)
    // When
    first = nil
    // Then
    try await second.value
    for task in tasks { #expect(try await task.value == small) }
  }

  @Test func `coded bytes that are kept for their digests count as well`() async throws {
    // Given bytes that no coding makes smaller, and that do not fit twice
    var random = SeededGenerator(seed: 1)
    let noise = (0..<50_000).map { _ in UInt8.random(in: 0...255, using: &random) }
    let coded = TestCoding.gzip.encode(noise)
    let digest = DigestField.contentDigest.line(for: coded)
    origin.serve("/verified", bytes: coded, headers: [TestCoding.gzip.field, digest])
    origin.serve("/taken", bytes: coded, headers: [TestCoding.gzip.field])
    let downloader = try makeDownloader()
    // Then
    let failure = await downloader.failure(of: origin.url("/verified"))
    #expect(failure?.code == "overloaded")
    #expect(try await downloader.load(origin.url("/taken")).file.bytes == noise)
  }
}
