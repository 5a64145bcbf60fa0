// RecompressorTests+Rendering: popular WebPs and AVIFs are rendered again from their sources.

import Core
import TestSupport
import Testing

@testable import Managing

extension RecompressorTests {
  /// A source that is a JPEG by its first bytes.
  private func serveJPEG() { loader.body.withLock { $0 = [0xff, 0xd8, 0xff, 0xe0] } }

  @Test(arguments: [false, true])
  func `a popular WebP is rendered again from its stored source with more effort`(
    restarts: Bool
  ) async throws {
    open(format: .webp)
    processor.result.withLock { result in
      result = { TestProcessor.image(bytes: $0.hasMoreEffort ? 4_000 : 5_000, format: .webp) }
    }
    serveJPEG()
    let request = try request(scale: 0.5)
    let first = try await manager.variant(for: request).variant
    // As after a restart, the request is known again from a disk hit.
    if restarts { memory.remove(request.key) }
    try await ask(request)
    let job = try #require(recompressions.first)
    #expect(recompressions.count == 1 && job.hasMoreEffort && !job.isRecompression)
    #expect(job.transform == request.transform && job.file.count == 4)
    let last = try #require(manager.cachedVariant(for: request.key))
    #expect(last.body.count == 4_000 && last.info.freshness == first.info.freshness)
    #expect(loader.started.value == 1, "nothing is downloaded for it")
  }

  @Test(
    arguments: [
      "the source is gone", "the source has the format", "watermark", "bytes", "effort",
    ])
  func `a WebP stays as it is without a source that tells more`(reason: String) async throws {
    open(format: .webp)
    serveJPEG()
    var transform = Transform()
    if reason == "bytes" { transform.output.maxBytes = 9_000 }
    if reason == "watermark" {
      transform.watermark = Watermark(source: try SourceURL(parsing: "http://marks/logo.png"))
    }
    if reason == "the source has the format" {
      loader.body.withLock { $0 = Array("RIFF\0\0\0\0WEBPVP8 ".utf8) }
    }
    let manager = manager {
      guard reason == "effort" else { return }
      $0.efforts.webp = 6
    }
    let request = ImageRequest(
      source: try SourceURL(parsing: "http://origin/a.jpg"), transform: transform)
    _ = try await manager.variant(for: request)
    if reason == "the source is gone" { await disk.remove(request.key.source) }
    for _ in 0..<Self.hits { _ = manager.cachedVariant(for: request.key) }
    try await eventually { manager.recompressionFigures.waiting == 0 }
    #expect(recompressions.isEmpty)
    #expect(manager.cachedVariant(for: request.key)?.body.count == 5_000)
  }

  @Test(
    arguments: [ImageFormat.webp, .avif],
    ["unchanged", "other bytes", "gone", "no disk answers"])
  func `a popular image of a local file is rendered again while the file is the same`(
    format: ImageFormat, file: String
  ) async throws {
    // Given
    open(format: format)
    serveJPEG()
    loader.version.withLock { $0 = 7 }
    let request = try request("local:///a.jpg")
    let first = try await manager.variant(for: request).variant
    // When
    switch file {
    case "other bytes": loader.version.withLock { $0 = 8 }
    case "gone": loader.failure.withLock { $0 = .sourceNotFound(status: 404) }
    case "no disk answers": loader.failure.withLock { $0 = .sourceTimeout(detail: "late") }
    default: break
    }
    try await ask(request)
    // Then
    let last = try #require(manager.cachedVariant(for: request.key))
    guard file == "unchanged" else {
      #expect(recompressions.isEmpty && last.info == first.info && manager.failedURLs().isEmpty)
      #expect(manager.recompressionFigures.failed == 0)
      guard file == "no disk answers" else { return }
      // It may become popular again.
      loader.failure.withLock { $0 = nil }
      try await ask(request)
      #expect(manager.cachedVariant(for: request.key)?.body.count == 4_000)
      return
    }
    let job = try #require(recompressions.first)
    #expect(recompressions.count == 1 && job.hasMoreEffort && job.file.count == 4)
    #expect(last.body.count == 4_000 && last.info.sourceVersion == 7)
  }

  @Test func `a local file that is overwritten during its job leaves the image as it is`()
    async throws
  {
    // Given
    open(format: .webp)
    serveJPEG()
    loader.version.withLock { $0 = 7 }
    let request = try request("local:///a.jpg")
    let first = try await manager.variant(for: request).variant
    processor.gate.close()
    try await ask(request, waits: false)
    try await eventually { [processor] in processor.started.value == 2 }
    // When
    loader.version.withLock { $0 = 8 }
    processor.gate.open()
    try await waitUntilDone()
    // Then
    #expect(manager.cachedVariant(for: request.key) === first)
    #expect(manager.recompressionFigures.smaller == 0 && manager.recompressionFigures.failed == 0)
  }

  @Test(
    arguments: [(1, nil, 60), (2, nil, 61), (1, 80, 77), (0, 4, 1), (1, 89, 86)]
      as [(Int, Int?, Int)])
  func `a popular AVIF is rendered again with more effort and a lower quality`(
    effort: Int, quality: Int?, lower: Int
  ) async throws {
    open(format: .avif)
    serveJPEG()
    let manager = manager { $0.efforts.avif = effort }
    var transform = Transform()
    transform.output.format = .avif
    transform.output.quality = quality
    let request = ImageRequest(
      source: try SourceURL(parsing: "http://origin/a.jpg"), transform: transform)
    try await ask(request, of: manager)
    let job = try #require(recompressions.first)
    #expect(recompressions.count == 1 && job.hasMoreEffort && job.file.count == 4)
    transform.output.quality = lower
    #expect(job.transform == transform)
    #expect(manager.cachedVariant(for: request.key)?.body.count == 4_000)
  }

  @Test(arguments: ["full colour", "no quality is lower", "effort", "pixels", "the source is AVIF"])
  func `an AVIF stays as it is where more effort gains nothing or takes too long`(reason: String)
    async throws
  {
    let side = reason == "pixels" ? 2_001 : 2_000
    let size = PixelSize(width: side, height: 2_000)
    open(format: .avif, size: size, first: size)
    serveJPEG()
    if reason == "the source is AVIF" {
      loader.body.withLock { $0 = [0, 0, 0, 16] + Array("ftypavif\0\0\0\0".utf8) }
    }
    let manager = manager { if reason == "effort" { $0.efforts.avif = 3 } }
    var transform = Transform()
    if reason == "full colour" { transform.output.quality = 90 }
    if reason == "no quality is lower" { transform.output.quality = 3 }
    let request = ImageRequest(
      source: try SourceURL(parsing: "http://origin/a.jpg"), transform: transform)
    try await ask(request, of: manager)
    #expect(recompressions.isEmpty)
    #expect(manager.cachedVariant(for: request.key)?.body.count == 5_000)
  }
}
