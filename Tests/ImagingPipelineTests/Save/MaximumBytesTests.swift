// MaximumBytesTests: `maxbytes` is met by quality first, then by size.

import Core
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct MaximumBytesTests {
  @Test(arguments: [ImageFormat.jpeg, .webp, .avif, .jxl])
  func `the best quality that fits is used and reported`(format: ImageFormat) throws {
    // given
    let source = try TestImages.jpeg(width: 240, height: 160)
    let full = try Made(source) { $0.format = format }
    let limit = full.bytes.count * 3 / 4
    // when
    let made = try Made(source, format: format) { $0.maxBytes = limit }
    // then
    #expect(made.bytes.count <= limit && made.size == full.size && made.scaledDownFrom == nil)
    let quality = try #require(made.quality)
    #expect(quality < format.traits.defaultQuality ?? 0)
    let explicit = try Made(source, format: format, quality: quality)
    #expect(explicit.bytes == made.bytes && explicit.quality == nil)
    let better = try Made(source, format: format, quality: quality + 1)
    #expect(better.bytes.count > limit)
    #expect(try made.pixels().psnr(to: .scene(width: 240, height: 160)) > 28)
  }

  @Test func `a quality beside maxbytes is the upper bound`() throws {
    let source = try TestImages.jpeg(width: 240, height: 160)
    let plain = try Made(source, format: .webp, quality: 40)
    let made = try Made(source, format: .webp, quality: 40) { $0.maxBytes = 1_000_000 }
    #expect(made.bytes == plain.bytes && made.quality == 40)
    let low = try Made(source, format: .webp, quality: 4) { $0.maxBytes = 1_000_000 }
    #expect(low.quality == 4)
  }

  @Test(arguments: ImageFormat.outputs)
  func `the size is reduced if quality does not suffice`(format: ImageFormat) throws {
    // given
    let source = try TestImages.jpeg(width: 240, height: 160)
    let least = try Made(source, format: format, quality: format == .avif ? 20 : 10)
    let smallest = try Made(source, format: format) { $0.maxBytes = 1 }
    let limit = (least.bytes.count + smallest.bytes.count) / 2
    // when
    let made = try Made(source, format: format) { $0.maxBytes = limit }
    // then
    #expect(made.bytes.count <= limit && made.bytes.count > limit / 2)
    #expect(made.size.width < 240 && made.scaledDownFrom == least.size)
    #expect(try made.pixels().size == made.size)
    #expect(abs(made.density - Double(made.size.width) / 240) < 0.001)
    let reference = Pixels.scene(width: made.size.width, height: made.size.height)
    #expect(try made.pixels().meanDifference(to: reference) < 12)
  }

  @Test(arguments: ImageFormat.outputs)
  func `if no size fits, a single pixel is sent`(format: ImageFormat) throws {
    let source = try TestImages.png(width: 120, height: 80, alpha: true)
    let made = try Made(source, format: format) { $0.maxBytes = 1 }
    #expect(made.size == PixelSize(width: 1, height: 1))
    #expect(try made.pixels().size == made.size)
  }

  @Test(arguments: [ImageFormat.gif, .webp])
  func `an animation keeps its frames and delays with maxbytes`(format: ImageFormat) throws {
    // given: frames with some detail
    let frames = (0..<4).map { frame in
      Pixels(width: 96, height: 64) { x, y in
        [UInt8((x * 7 + frame * 31) % 256), UInt8((y * 5 + x) % 256), UInt8((x * y + frame) % 256)]
      }
    }
    let source = try TestImages.animation(
      frames, delays: [30, 70, 120, 40], loop: 3, as: ".webp[lossless]")
    let least = try Made(source, format: format, quality: 10)
    let limit = least.bytes.count / 2
    // when
    let made = try Made(source, format: format) { $0.maxBytes = limit }
    // then
    #expect(made.bytes.count <= limit && made.frames == 4 && made.size.width < 96)
    #expect(try TestImages.delays(of: made.bytes) == [30, 70, 120, 40])
    #expect(try TestImages.loop(of: made.bytes) == 3)
    #expect(try made.pixels(frame: 3).size == made.size)
  }

  @Test func `transparency and metadata are kept with maxbytes`() throws {
    // given
    let source = try TestImages.png(width: 120, height: 80, alpha: true)
    let described = try TestImages.described(width: 240, height: 160, as: ".jpg")
    // when
    let small = try Made(source) { $0.maxBytes = 500 }
    let kept = try Made(described) {
      $0.format = .jpeg
      $0.stripsMetadata = false
      $0.maxBytes = 2_200
    }
    // then
    #expect(small.format == .png && small.bytes.count <= 500 && small.size.width < 120)
    #expect(try small.pixels()[0, small.size.height - 1][3] < 40)
    #expect(kept.bytes.count <= 2_200 && kept.bytes.contains(TestImages.exifMark))
  }

  @Test func `X-Scaled-Down reports the size before limitbytes, not maxbytes`() throws {
    let source = try TestImages.jpeg(width: 525, height: 345)
    let made = try Made(source) {
      $0.limitBytes = 629_145
      $0.maxBytes = 1_000
    }
    #expect(made.scaledDownFrom == PixelSize(width: 525, height: 345) && made.size.width < 489)
  }

  /// The outcome of a search.
  private struct Found {
    var attempts: [ByteSearch.Attempt] = []
    var best: ByteSearch.Attempt?
    var bytes = Int.max
  }

  private func run(
    limit: Int, qualities: ClosedRange<Int>?, size: PixelSize,
    _ bytes: (ByteSearch.Attempt) -> Int
  ) -> Found {
    var search = ByteSearch(limit: limit, qualities: qualities, size: size)
    var found = Found()
    while let attempt = search.next() {
      found.attempts.append(attempt)
      let count = bytes(attempt)
      if search.record(bytes: count) {
        found.best = attempt
        found.bytes = count
      }
    }
    return found
  }

  private let size = PixelSize(width: 300, height: 200)

  /// Returns a header plus pixels that cost more at higher quality, like a JPEG.
  private func bytes(_ attempt: ByteSearch.Attempt) -> Int {
    let quality = Double(attempt.quality ?? 50)
    return 600 + Int(Double(attempt.size.pixels) * (0.02 + quality * quality / 40_000))
  }

  @Test func `the best quality that fits is found for any limit`() {
    let least = bytes(ByteSearch.Attempt(quality: 10, size: size))
    let maximum = bytes(ByteSearch.Attempt(quality: 80, size: size))
    for limit in stride(from: least, to: maximum, by: 61) {
      let found = run(limit: limit, qualities: 10...80, size: size, bytes)
      let quality = found.best?.quality ?? 0
      #expect(found.bytes <= limit && found.best?.size == size)
      #expect(bytes(ByteSearch.Attempt(quality: quality + 1, size: size)) > limit)
      #expect(found.attempts.count <= ByteSearch.maximumAttempts)
    }
  }

  @Test func `below the minimum quality the size is reduced close to the limit`() {
    let least = bytes(ByteSearch.Attempt(quality: 10, size: size))
    for limit in stride(from: 700, to: least, by: 37) {
      let found = run(limit: limit, qualities: 10...80, size: size, bytes)
      #expect(found.bytes <= limit && found.best?.quality == 10)
      #expect(Double(found.bytes) > 0.85 * Double(limit))
      #expect(found.attempts.count <= ByteSearch.maximumAttempts)
    }
  }

  @Test func `a search always ends, and its result fits if any attempt did`() {
    var generator = SeededGenerator(seed: 6)
    for _ in 0..<2000 {
      let limit = Int.random(in: 1...5000, using: &generator)
      let size = PixelSize(
        width: .random(in: 1...500, using: &generator),
        height: .random(in: 1...500, using: &generator))
      let top = Int.random(in: 1...100, using: &generator)
      var tried: [Int] = []
      let found = run(
        limit: limit, qualities: Bool.random(using: &generator) ? nil : min(10, top)...top,
        size: size
      ) { _ in
        tried.append(.random(in: 1...10_000, using: &generator))
        return tried.last ?? 0
      }
      #expect(found.attempts.count <= ByteSearch.maximumAttempts)
      #expect((found.bytes <= limit) == tried.contains { $0 <= limit })
      #expect(found.attempts.allSatisfy { $0.size.width <= size.width && $0.size.width > 0 })
    }
  }
}
