// JPEGRecompressionTests: JPEGs in fewer bytes, with the same coefficients.

import ImagingWire
import Model
import TestSupport
import Testing

@testable import ImagingPipeline

@Suite(.onOwnThreads) struct JPEGRecompressionTests {
  private static let sizes = [
    PixelSize(width: 200, height: 150), PixelSize(width: 121, height: 83),
    PixelSize(width: 7, height: 9),
  ]

  @Test(arguments: JPEGTurnTests.kinds, sizes)
  func `a recompressed JPEG has the same pixels and never more bytes`(
    kind: JPEGTurnTests.Kind, size: PixelSize
  ) throws {
    let source = try kind.jpeg(size)
    let result = try Recompressed(source)
    #expect(result.bytes.count <= source.count)
    #expect(try Pixels(decoding: result.bytes).values == Pixels(decoding: source).values)
    #expect(result.report.content.image?.size == size)
    if kind.isProgressive { #expect(result.bytes == source) }
    if result.bytes != source, size.width > 100 { #expect(isProgressive(result.bytes)) }
  }

  @Test func `a photograph becomes smaller and progressive, once`() throws {
    let source = try TestImages.encode(.noisy(width: 400, height: 300), as: ".jpg[Q=80]")
    let once = try Recompressed(source).bytes
    #expect(once.count < source.count && isProgressive(once))
    #expect(try Recompressed(once).bytes == once)
  }

  @Test func `profile, Exif and comments stay`() throws {
    let source = try TestImages.described(width: 300, height: 200, as: ".jpg")
    let result = try Recompressed(source).bytes
    #expect(result != source)
    let before = try TestImages.metadata(of: source)
    #expect(!before.isEmpty)
    #expect(try TestImages.metadata(of: result) == before)
  }

  @Test func `a damaged JPEG is refused or stays as it is`() throws {
    let source = try TestImages.jpeg(width: 120, height: 90)
    for count in stride(from: 2, to: source.count, by: 61) {
      let cut = Array(source[..<count])
      if let result = try? Recompressed(cut) { #expect(result.bytes == cut) }
    }
  }

  @Test func `limits hold, and an expensive job asks first`() throws {
    let source = try TestImages.jpeg(width: 120, height: 90)
    var limits = ImagingLimits()
    limits.maximumPixels = 100
    #expect(throws: ImageError.tooManyPixels(pixels: 10_800, limit: 100)) {
      _ = try Recompressed(source, limits: limits)
    }
    source.withUnsafeBytes { bytes in
      _ = #expect(throws: ImageError.cancelled) {
        _ = try Pipeline().recompress(bytes, limits: ImagingLimits()) { _ in false }.count
      }
    }
    #expect(throws: ImageError.self) {
      _ = try Recompressed(try TestImages.webp(width: 20, height: 20))
    }
  }

  private func isProgressive(_ jpeg: [UInt8]) -> Bool { jpeg.contains([0xff, 0xc2]) }
}

/// A recompressed variant with its bytes copied out.
struct Recompressed {
  let report: RenderReport
  let bytes: [UInt8]

  /// Recompresses a variant.
  init(_ variant: [UInt8], limits: ImagingLimits = ImagingLimits()) throws {
    TestImages.start()
    (report, bytes) = try GuardedBytes(variant).withBytes { bytes in
      let image = try Pipeline().recompress(bytes, limits: limits)
      return (image.report, image.withUnsafeBytes { Array($0) })
    }
  }
}
