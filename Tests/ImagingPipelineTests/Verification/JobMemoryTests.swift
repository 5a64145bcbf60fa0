// JobMemoryTests: the memory of a job is estimated from headers, and bounds what is begun.

import Core
import ImagingPipeline
import TestSupport
import Testing

@Suite(.onOwnThreads) struct JobMemoryTests {
  /// Returns the estimated bytes of a job that is not begun.
  private func estimate(
    _ source: [UInt8], limits: ImagingLimits = ImagingLimits(), verifies: Bool = false,
    change: (inout Transform) -> Void
  ) throws -> Int {
    try #require(
      try Made.costs(of: source, limits: limits, verifies: verifies, change: change).first
    ).bytes
  }

  private static func scene(_ suffix: String, alpha: Bool = false, deep: Bool = false) throws
    -> [UInt8]
  {
    try TestImages.encode(
      .scene(width: 100, height: 75, alpha: alpha), as: suffix, zoom: 10, sixteenBits: deep)
  }

  /// The bytes a pixel of a source of 750,000, beyond those of strips of the same width.
  private func bytesOfPixel(_ source: [UInt8], deep: Bool = false) throws -> Double {
    let plain = try estimate(Self.scene(".tif", deep: deep)) { $0.width = 20 }
    return Double(try estimate(source) { $0.width = 20 } - plain) / 750_000
  }

  @Test(arguments: [
    (".jpg", 0.0), (".jpg[interlace]", 3), (".jpg[interlace,subsample_mode=off]", 6),
    (".png[interlace]", 3), (".tif", 0), (".gif", 4.2), (".avif[effort=0]", 9.6),
    (".heic[effort=0]", 6.9), (".jxl[effort=3]", 6.6),
  ])
  func `a source that is not decoded in strips is held whole`(suffix: String, bytes: Double) throws
  {
    #expect(abs(try bytesOfPixel(Self.scene(suffix)) - bytes) < 0.1)
  }

  @Test func `a PNG that is decoded in one call is held whole, with its stream`() throws {
    let source = try Self.scene(".png")
    // Of the other, all rows are held in either case.
    let expected = Double(source.count) / 750_000
    #expect(abs(try bytesOfPixel(source) - expected) < 0.1)
    let indexed = try Self.scene(".png[palette]")
    let stream = Double(indexed.count) / 750_000
    #expect(abs(try bytesOfPixel(indexed) - stream - 1) < 0.1)
  }

  @Test func `memory that only saves time makes no job expensive`() throws {
    let source = try Self.scene(".png")
    var limits = ImagingLimits()
    var bytes: [Int] = []
    for quick in [Int.max, 8 << 20] {
      limits.maximumQuickBytes = quick
      bytes.append(try estimate(source, limits: limits) { $0.width = 20 })
    }
    let inStrips = try estimate(Self.scene(".tif")) { $0.width = 20 }
    #expect(bytes[1] < bytes[0] && bytes[1] == inStrips)
  }

  @Test func `16 bits take twice the memory of 8`() throws {
    #expect(abs(try bytesOfPixel(Self.scene(".png[interlace]", deep: true), deep: true) - 6) < 0.1)
  }

  @Test func `a WebP that is shrunk on load takes less`() throws {
    let source = try Self.scene(".webp")
    let small = try estimate(source) { $0.width = 100 }
    let large = try estimate(source) { $0.width = 900 }
    #expect(large - small > 6 * 750_000)
  }

  @Test func `tiles of a JPEG 2000 are held a row at a time`() throws {
    let tiled = try estimate(Self.scene(".jp2[tile-height=64]")) { $0.width = 20 }
    let whole = try estimate(Self.scene(".jp2[tile-height=1024]")) { $0.width = 20 }
    #expect(abs(whole - tiled - 1_000 * (750 - 64) * 12) < 100_000)
  }

  @Test(arguments: ImageFormat.outputs)
  func `an encoder's memory grows with the result`(format: ImageFormat) throws {
    let source = try Self.scene(".jpg")
    let small = try estimate(source) {
      $0.width = 100
      $0.format = format
    }
    let large = try estimate(source) {
      $0.width = 1_000
      $0.format = format
    }
    #expect(large - small > 5 * 700_000)
  }

  @Test func `margins and a check of all pixels count before they are looked for`() throws {
    let source = try Self.scene(".png[interlace]")
    let trimmed = try estimate(source) { $0.trim = 10 }
    let verified = try estimate(source, verifies: true) { $0.product = .info(nil) }
    #expect(trimmed > 3 * 750_000 && verified > 3 * 750_000)
  }

  @Test(arguments: [
    ".jpg[interlace]", ".png[interlace]", ".gif", ".webp", ".webp[lossless]", ".avif[effort=0]",
    ".heic[effort=0]", ".jxl[effort=3]", ".jp2[tile-height=1024]",
  ])
  func `what never fits is refused, and not held against the source`(suffix: String) throws {
    // Given: a source in strips is estimated at 11 MiB, and an estimate may be a sixth too high
    let limits = ImagingLimits { $0.maximumBytes = 10 << 20 }
    #expect(Made.error(try Self.scene(".jpg"), limits: limits) { $0.width = 20 } == nil)
    // When, then
    let error = Made.error(try Self.scene(suffix), limits: limits) { $0.width = 700 }
    guard case .ofVariant(.tooCostly(_, key: ImagingLimits.memoryKey)) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test func `a wide and low image holds no more rows than it has`() throws {
    let source = try TestImages.encode(.scene(width: 1_000, height: 3), as: ".tif", zoom: 10)
    let bytes = try estimate(source) { $0.width = 100 }
    #expect(bytes < 10 << 20)
  }

  @Test func `a canvas beyond the pixel limit is that, however little memory there is`() throws {
    var limits = ImagingLimits()
    limits.maximumBytes = 1 << 20
    limits.maximumPixels = 10_000
    let error = Made.error(try Self.scene(".webp"), limits: limits) { $0.width = 20 }
    #expect(error?.code == "too_many_pixels")
  }

  @Test func `a result that never fits is refused, and smaller ones can be had`() throws {
    let source = try Self.scene(".jpg")
    let limits = ImagingLimits { $0.maximumBytes = 30 << 20 }
    let error = Made.error(source, limits: limits, width: 1_000, format: .jxl)
    guard case .ofVariant(.tooCostly)? = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(
      Made.error(source, limits: limits, width: 100, format: .jxl) == nil)
  }
}
