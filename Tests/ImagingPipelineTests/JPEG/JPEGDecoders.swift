// JPEGDecoders: runs the reducer and libjpeg without the rest of the pipeline.

import Model
import TestSupport

@testable import ImagingPipeline

enum JPEGDecoders {
  /// Decodes with the reducer; `nil` if it leaves the JPEG to libjpeg.
  static func reduced(_ bytes: [UInt8], by shrink: Int) throws -> Pixels? {
    try withExactly(bytes) { buffer in
      guard let reducer = JPEGReducer(buffer, shrink: shrink),
        // A damaged header may state any size.
        reducer.size.pixels < mostPixels
      else { return nil }
      let count = reducer.size.width * reducer.bands
      var pixels = Pixels(
        width: reducer.size.width, height: reducer.size.height,
        color: [UInt8](repeating: 0, count: reducer.bands))
      let isWhole = try reducer.run(buffer) { y, row in
        pixels.values.replaceSubrange(
          y * count..<(y + 1) * count, with: UnsafeBufferPointer(start: row, count: count))
      }
      return isWhole ? pixels : nil
    }
  }

  /// Decodes with libjpeg under the pipeline's checks; `nil` if it fails. libvips drops partial
  /// last rows and columns, and cannot open an image without full ones.
  static func libjpeg(_ bytes: [UInt8], by shrink: Int) -> Pixels? {
    TestImages.start()
    return try? withExactly(bytes) { buffer in
      let header = try Loader.open(buffer, as: .jpeg, pages: .first, failOn: .truncated)
      let (width, height) = (header.size.width, header.size.height)
      guard min(width, height) >= shrink, header.size.pixels < mostPixels else { return nil }
      let image = try Loader.open(
        buffer, as: .jpeg, pages: .first, shrink: shrink, failOn: .truncated)
      let (size, bands) = (image.size, image.bands)
      let rows = try PixelRows(of: image)
      var pixels = Pixels(
        width: size.width, height: size.height, color: [UInt8](repeating: 0, count: bands))
      pixels.values = try (0..<size.height).flatMap { y in
        Array(UnsafeBufferPointer(start: try rows.row(y), count: size.width * bands))
      }
      return pixels
    }
  }

  private static let mostPixels = 1_000_000

  /// Passes a copy that ends at an allocation's end, so that a sanitizer detects reads past it.
  private static func withExactly<Result>(
    _ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Result
  ) rethrows -> Result {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
    defer { copy.deallocate() }
    copy.copyBytes(from: bytes)
    return try body(UnsafeRawBufferPointer(copy))
  }
}
