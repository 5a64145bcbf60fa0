// KeepOriginalStepTests: tests that a variant is never larger than a suitable source.

import Model
import TestSupport
import Testing

@testable import Managing

final class KeepOriginalStepTests: ManagedTests {
  private let size = PixelSize(width: 40, height: 30)

  private func request(
    _ format: ImageFormat?, _ change: (inout Transform) -> Void = { _ in }
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
          bytes: source.count + more, .webp, size, scaledDownFrom: scaledDownFrom)
      }
    }
  }

  private func bytes(_ variant: Variant) throws -> [UInt8] {
    guard case .memory(let bytes) = variant.body else { throw NeverHappened() }
    return bytes.withUnsafeBytes { Array($0) }
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
  func `what comes out no smaller than a source that would do gives way to it`(
    format: ImageFormat, more: Int
  ) async throws {
    // Given
    let source = try plain(format)
    serve(source, made: more)
    let wishes = [
      try request(format), try request(nil) { $0.accepted = [.webp] },
      try request(format) { ($0.quality, $0.maxBytes) = (100, source.count) },
      try request(format) { ($0.width, $0.height, $0.fit) = (40, 30, .cover) },
    ]
    for wish in wishes {
      // When
      let delivery = try await manager.variant(for: wish)
      // Then
      #expect(try bytes(delivery.variant) == source)
      #expect(delivery.variant.info.format == format)
      #expect(delivery.variant.info.size == size)
      #expect(delivery.variant.info.etag != "\"d1\"")
    }
    #expect(manager.figures.sourcesInstead == wishes.count)
  }

  @Test func `a smaller result goes out`() async throws {
    serve(try plain(.jpeg), made: -1)
    let delivery = try await manager.variant(for: try request(nil))
    #expect(delivery.variant.info.etag == "\"d1\"")
    #expect(manager.figures.sourcesInstead == 0)
  }

  @Test func `it is the same answer from memory, from disk, and made once more`() async throws {
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

  @Test func `who wants another image gets it, however large it is`() async throws {
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
      let delivery = try await manager.variant(for: try request(nil, wish))
      #expect(delivery.variant.info.etag == "\"d1\"")
    }
    // An explicit format is always used, as in imgproxy, thumbor and sharp.
    for format in [ImageFormat.png, .webp, .avif] {
      let delivery = try await manager.variant(for: try request(format))
      #expect(delivery.variant.info.etag == "\"d1\"")
    }
    #expect(manager.figures.sourcesInstead == 0)
  }

  @Test func `a source of another size, or made smaller, does not do`() async throws {
    let source = try plain(.jpeg)
    serve(source, made: 9, of: PixelSize(width: 40, height: 29))
    #expect(try await manager.variant(for: try request(nil)).variant.info.etag == "\"d1\"")
    serve(source, made: 9, scaledDownFrom: PixelSize(width: 80, height: 60))
    let wish = try request(nil) { $0.limitBytes = 4_800 }
    #expect(try await manager.variant(for: wish).variant.info.etag == "\"d1\"")
  }

  @Test func `a format that was not negotiated, or may move where nothing is to, does not do`()
    async throws
  {
    serve(try plain(.webp), made: 9)
    for accepted in [[], [ImageFormat.avif]] {
      let wish = try request(nil) { $0.accepted = accepted }
      #expect(try await manager.variant(for: wish).variant.info.format == .webp)
      #expect(manager.figures.sourcesInstead == 0)
    }
    serve(try plain(.gif), made: 9)
    let still = try request(.gif) { $0.isAnimated = false }
    await disk.remove(still.key.source)
    #expect(try await manager.variant(for: still).variant.info.etag == "\"d1\"")
  }

  @Test func `a source with anything to turn, convert or strip does not do`() async throws {
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
