// RecompressorTests: popular variants become smaller in both tiers, once.

import Core
import TestSupport
import Testing

@testable import Managing

final class RecompressorTests: ManagedTests {
  static let hits = ImagingSettings().recompressAfter

  /// Opens all gates. A rendered image has 5,000 bytes, a recompressed one `bytes`.
  func open(
    bytes: Int = 4_000, format: ImageFormat = .jpeg, frames: Int = 1,
    size: PixelSize = PixelSize(width: 3, height: 1), first: PixelSize? = nil
  ) {
    openAll()
    processor.result.withLock { result in
      result = { job in
        guard job.isBackground else {
          return TestProcessor.image(
            bytes: 5_000, format: format, size: first ?? PixelSize(width: 3, height: 1),
            frames: frames)
        }
        var image = TestProcessor.image(bytes: bytes, format: format, size: size)
        image.report.digest = "smaller"
        image.processorTime = .milliseconds(5)
        return image
      }
    }
  }

  var recompressions: [ImageJob] {
    processor.jobs.withLock { $0.filter(\.isBackground) }
  }

  /// Makes a variant popular, and waits until nothing is left to do.
  @discardableResult
  func ask(
    _ request: ImageRequest, of other: ImageManager? = nil, hits: Int = hits, waits: Bool = true
  ) async throws -> Variant {
    let manager = other ?? manager
    let first = try await manager.variant(for: request).variant
    for _ in 0..<hits { _ = manager.cachedVariant(for: request.key) }
    if waits { try await waitUntilDone(manager) }
    return first
  }

  func waitUntilDone(_ other: ImageManager? = nil) async throws {
    try await eventually { (other ?? manager).recompressionFigures.waiting == 0 }
  }

  @Test func `a popular variant becomes smaller in both tiers, with its freshness and a new tag`()
    async throws
  {
    open()
    let request = try request()
    let first = try await ask(request, hits: Self.hits - 1)
    #expect(manager.cachedVariant(for: request.key) === first, "the last hit has the first bytes")
    try await waitUntilDone()
    let second = try #require(manager.cachedVariant(for: request.key))
    #expect(second.body.count == 4_000 && second.info.etag == "\"smaller\"")
    #expect(second.info.isRecompressed && !first.info.isRecompressed)
    #expect(second.info.freshness == first.info.freshness)
    #expect(second.info.sourceVersion == first.info.sourceVersion)
    memory.remove(request.key)
    let stored = try await manager.variant(for: request)
    #expect(stored.cacheStatus == .hit(.disk) && stored.variant.info == second.info)
    #expect(disk.demands.withLock { $0.last } == .replacement)
    let job = try #require(recompressions.first)
    #expect(job.isBackground && job.transform.output.format == .jpeg && job.file.count == 5_000)
    let figures = manager.recompressionFigures
    #expect(figures.smaller == 1 && figures.bytesBefore == 5_000 && figures.bytesAfter == 4_000)
    #expect(figures.processorSeconds == 0.005 && figures.unchanged == 0 && figures.failed == 0)
  }

  @Test(arguments: [4_000, 5_000, 5_001])
  func `a variant is recompressed once, whether or not it becomes smaller`(bytes: Int) async throws
  {
    open(bytes: bytes)
    let request = try request()
    let first = try await ask(request)
    for _ in 0..<3 {
      try await ask(request)
      // As after a restart
      memory.remove(request.key)
    }
    #expect(recompressions.count == 1)
    let last = try await manager.variant(for: request).variant
    #expect(last.info.isRecompressed && last.body.count == min(bytes, 5_000))
    #expect((last.info.etag == first.info.etag) == (bytes >= 5_000))
    #expect(manager.recompressionFigures.unchanged == (bytes >= 5_000 ? 1 : 0))
  }

  @Test func `a result of another size or format is not used`() async throws {
    open(size: PixelSize(width: 4, height: 1))
    try await ask(try request())
    #expect(manager.cachedVariant(for: try request().key)?.body.count == 5_000)
    #expect(manager.recompressionFigures.unchanged == 1)
  }

  @Test(arguments: [
    ImageError.undecodable(detail: "it died"), .internal(detail: "?"), .imagingTimeout,
    .tooCostly(reason: "long"),
  ])
  func `a recompression that failed is not repeated`(error: ImageError) async throws {
    open()
    let request = try request()
    _ = try await manager.variant(for: request)
    processor.failure.withLock { $0 = error }
    for _ in 0..<3 { try await ask(request) }
    #expect(recompressions.count == 1 && manager.recompressionFigures.failed == 1)
    #expect(manager.failedURLs().isEmpty)
    let variant = try #require(manager.cachedVariant(for: request.key))
    #expect(variant.info.isRecompressed && variant.body.count == 5_000)
  }

  @Test(arguments: [ImageError.cancelled, .overloaded(queue: "imaging", retryAfter: 1)])
  func `a job that gives way is repeated, a limited number of times`(error: ImageError) async throws
  {
    open()
    let request = try request()
    _ = try await manager.variant(for: request)
    processor.failure.withLock { $0 = error }
    try await ask(request)
    #expect(recompressions.count == BackgroundQueue<Int>.maximumDelays + 1)
    #expect(manager.recompressionFigures.failed == 0)
    // Then: it may become popular again
    processor.failure.withLock { $0 = nil }
    try await ask(request)
    #expect(manager.cachedVariant(for: request.key)?.body.count == 4_000)
  }

  @Test(arguments: ["purge", "evict", "upload"])
  func `a result is dropped if the variant is gone meanwhile`(event: String) async throws {
    open()
    let request = try request()
    _ = try await manager.variant(for: request)
    processor.gate.close()
    try await ask(request, waits: false)
    try await eventually { [processor] in processor.started.value == 2 }
    switch event {
    case "purge": _ = try await manager.purge(.url(request.source))
    case "evict": memory.remove(request.key)
    default:
      var origin = OriginResponse(status: 200)
      origin.contentType = "image/png"
      _ = try await manager.put(
        request.source, file: .sealed(try TestImages.png(width: 3, height: 2)), origin: origin)
    }
    processor.gate.open()
    try await waitUntilDone()
    #expect(manager.cachedVariant(for: request.key) == nil)
    #expect(manager.recompressionFigures.smaller == 0)
  }

  @Test func `a variant that was renewed meanwhile keeps its new freshness`() async throws {
    open()
    let request = try request()
    let first = try await manager.variant(for: request).variant
    processor.gate.close()
    try await ask(request, waits: false)
    try await eventually { [processor] in processor.started.value == 2 }
    var info = first.info
    info.freshness = Freshness(receivedAt: UnixTime(seconds: 1_500), lifetime: 3_600)
    _ = memory.store(Variant(key: first.key, info: info, body: first.body))
    pass(seconds: 500)
    processor.gate.open()
    try await waitUntilDone()
    let last = try #require(manager.cachedVariant(for: request.key))
    #expect(last.body.count == 4_000 && last.info.freshness.receivedAt.seconds == 1_500)
  }

  @Test func `what is not on disk, too small, animated or damaged is left alone`()
    async throws
  {
    open()
    for url in ["http://origin/memory.jpg", "http://origin/unstorable.jpg"] {
      if url.contains("unstorable") { loader.cacheControl.withLock { $0 = "no-store" } }
      try await ask(try request(url) { $0.store = .memory })
    }
    loader.cacheControl.withLock { $0 = nil }
    for (format, frames) in [(ImageFormat.avif, 2), (.gif, 1), (.png, 2), (.webp, 2)] {
      open(format: format, frames: frames)
      try await ask(try request("http://origin/\(format)"))
    }
    open()
    processor.result.withLock { $0 = { _ in TestProcessor.image(bytes: 1_000, format: .jpeg) } }
    try await ask(try request("http://origin/small.jpg"))
    #expect(recompressions.isEmpty)
  }

  @Test func `nothing is recompressed if the setting is 0`() async throws {
    open()
    let plain = manager { $0.recompressAfter = 0 }
    let request = try request()
    let first = try await plain.variant(for: request).variant
    for _ in 0..<1_000 { #expect(plain.cachedVariant(for: request.key) === first) }
    #expect(plain.recompressionFigures.smaller == 0 && recompressions.isEmpty)
    #expect(!first.hasErrand)
  }

  @Test func `hits on many threads make a variant popular once`() async throws {
    open()
    let requests = try (0..<8).map { try request("http://origin/\($0).jpg") }
    for request in requests { _ = try await manager.variant(for: request) }
    await withTaskGroup { group in
      for _ in 0..<4 {
        group.addTask { [manager] in
          for _ in 0..<200 {
            for request in requests { _ = manager.cachedVariant(for: request.key) }
          }
        }
      }
    }
    try await waitUntilDone()
    #expect(recompressions.count == requests.count)
    #expect(manager.recompressionFigures.smaller == requests.count)
    for request in requests {
      #expect(manager.cachedVariant(for: request.key)?.body.count == 4_000)
    }
  }
}
