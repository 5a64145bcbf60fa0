// KeepOriginalTests: tests that a variant is never larger than a suitable source.

import Core
import TestSupport
import Testing

@testable import Managing

final class KeepOriginalTests: ManagedTests {
  private let size = PixelSize(width: 40, height: 30)

  private func request(
    _ format: ImageFormat?, change: (inout Transform) -> Void = { _ in }
  ) throws -> ImageRequest {
    var transform = Transform()
    transform.format = format
    change(&transform)
    return ImageRequest(
      source: try SourceURL(parsing: "http://origin/a"), transform: transform)
  }

  /// Sets up an origin with this source, and a processor whose result is `more` bytes larger.
  private func serve(
    _ source: [UInt8], made more: Int, of size: PixelSize? = nil, scaledDownFrom: PixelSize? = nil
  ) {
    openAll()
    loader.body.withLock { $0 = source }
    let size = size ?? self.size
    processor.result.withLock { result in
      result = { _ in
        TestProcessor.image(
          bytes: source.count + more, format: .webp, size: size, scaledDownFrom: scaledDownFrom)
      }
    }
  }

  private func bytes(_ variant: Variant) throws -> [UInt8] {
    guard case .memory(let bytes) = variant.body else {
      Issue.record("not in memory")
      return []
    }
    return bytes.withUnsafeBytes { Array($0) }
  }

  @Test func `memory that is full of variants does not make a result larger than its source`()
    async throws
  {
    // Given
    let source = try plain(.jpeg)
    serve(source, made: 9)
    let full = VariantStorage(memory: ByteBudget(limit: 0), files: nil, maximumInMemory: .max)
    let manager = manager(storage: full)
    // When
    let variant = try await manager.variant(for: request(.jpeg)).variant
    // Then
    guard case .file(let file) = variant.body else {
      Issue.record("it is in memory")
      return
    }
    let bytes = try ImageBytes(contentsOf: file, mayMap: false)
    #expect(bytes.withUnsafeBytes { Array($0) } == source)
    #expect(manager.figures.sourcesInstead == 1)
  }

  private func plain(_ format: ImageFormat) throws -> [UInt8] {
    switch format {
    case .png: try TestImages.png(width: 40, height: 30)
    case .gif: try TestImages.gif(width: 40, height: 30, frames: 2)
    case .webp: try TestImages.bareWebP(width: 40, height: 30)
    default: try TestImages.jpeg(width: 40, height: 30, bare: true)
    }
  }

  @Test(arguments: [ImageFormat.jpeg, .png, .gif, .webp], [0, 1, 1_000])
  func `a result no smaller than a suitable source is replaced by it`(
    format: ImageFormat, more: Int
  ) async throws {
    // Given
    let source = try plain(format)
    serve(source, made: more)
    let wishes = [
      try request(format), try request(nil) { $0.accepted = [.webp] },
      try request(format) {
        $0.quality = 100
        $0.maxBytes = source.count
      },
      try request(format) {
        $0.width = 40
        $0.height = 30
        $0.fit = .cover
      },
    ]
    for wish in wishes {
      // When
      let delivery = try await manager.variant(for: wish)
      // Then
      #expect(try bytes(delivery.variant) == source)
      #expect(delivery.variant.info.image?.format == format)
      #expect(delivery.variant.info.image?.size == size)
      #expect(delivery.variant.info.etag != "\"d1\"")
    }
    #expect(manager.figures.sourcesInstead == wishes.count)
  }

  @Test func `a smaller result is served`() async throws {
    serve(try plain(.jpeg), made: -1)
    let delivery = try await manager.variant(for: try request(nil))
    #expect(delivery.variant.info.etag == "\"d1\"")
    #expect(manager.figures.sourcesInstead == 0)
  }

  @Test func `a kept original is the same from memory, from disk and after another rendering`()
    async throws
  {
    serve(try plain(.jpeg), made: 9)
    let wish = try request(nil)
    let first = try await manager.variant(for: wish)
    #expect(manager.cachedVariant(for: wish.key) === first.variant)
    memory.remove(wish.key)
    let second = try await manager.variant(for: wish)
    #expect(second.cacheStatus == .hit(.disk))
    #expect(processor.started.value == 1)
    memory.remove(wish.key)
    await disk.remove(wish.key)
    let third = try await manager.variant(for: wish)
    #expect(processor.started.value == 2)
    #expect(second.variant.info == first.variant.info && third.variant.info == first.variant.info)
    #expect(try bytes(second.variant) == bytes(third.variant))
  }

  @Test func `a request for a changed image gets it, regardless of its length`() async throws {
    let source = try plain(.jpeg)
    serve(source, made: 9)
    let watermark = Watermark(source: try SourceURL(parsing: "local:///w.png"))
    let wishes: [(inout Transform) -> Void] = [
      { $0.crop = PixelArea(x: 0, y: 0, size: PixelSize(width: 40, height: 30)) },
      { $0.rotation = .half }, { $0.flip = .both }, { $0.trim = 1 }, { $0.frame = 0 },
      { $0.effects.isGrayscale = true }, { $0.effects.blur = 1 }, { $0.watermark = watermark },
      { $0.maxBytes = source.count - 1 }, { $0.product = .placeholder(.lqip) },
    ]
    for wish in wishes {
      let delivery = try await manager.variant(for: try request(nil, change: wish))
      #expect(delivery.variant.info.etag == "\"d1\"")
    }
    // An explicit format is always used, as in imgproxy, thumbor and sharp.
    for format in [ImageFormat.png, .webp, .avif] {
      let delivery = try await manager.variant(for: try request(format))
      #expect(delivery.variant.info.etag == "\"d1\"")
    }
    #expect(manager.figures.sourcesInstead == 0)
  }

  @Test func `a source of another size is not a substitute`() async throws {
    let source = try plain(.jpeg)
    serve(source, made: 9, of: PixelSize(width: 40, height: 29))
    #expect(try await manager.variant(for: try request(nil)).variant.info.etag == "\"d1\"")
    serve(source, made: 9, scaledDownFrom: PixelSize(width: 80, height: 60))
    let wish = try request(nil) { $0.limitBytes = 4_800 }
    #expect(try await manager.variant(for: wish).variant.info.etag == "\"d1\"")
  }

  @Test func `a format that was not negotiated or may be animated is not a substitute`()
    async throws
  {
    serve(try plain(.webp), made: 9)
    for accepted in [[], [ImageFormat.avif]] {
      let wish = try request(nil) { $0.accepted = accepted }
      #expect(try await manager.variant(for: wish).variant.info.image?.format == .webp)
      #expect(manager.figures.sourcesInstead == 0)
    }
    serve(try plain(.gif), made: 9)
    let still = try request(.gif) { $0.isAnimated = false }
    await disk.remove(still.key.source)
    #expect(try await manager.variant(for: still).variant.info.etag == "\"d1\"")
  }

  @Test func `a source that needs turning, conversion or stripping is not a substitute`()
    async throws
  {
    let needy = [
      try TestImages.jpeg(width: 40, height: 30, orientation: 3),
      try TestImages.jpeg(width: 40, height: 30, profile: "p3"),
      try TestImages.jpeg(width: 40, height: 30),
      try TestImages.jpeg(width: 40, height: 30, bare: true) + Array("a text behind it".utf8),
    ]
    for (number, source) in needy.enumerated() {
      serve(source, made: 9)
      let wish = ImageRequest(
        source: try SourceURL(parsing: "http://origin/\(number)"), transform: Transform())
      #expect(try await manager.variant(for: wish).variant.info.etag == "\"d1\"")
    }
  }
}
