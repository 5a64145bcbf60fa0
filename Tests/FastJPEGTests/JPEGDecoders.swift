// JPEGDecoders: runs the scaled decoder and libjpeg on the same bytes.

import Core
import TestSupport
import Testing

@testable import FastJPEG

enum JPEGDecoders {
  /// The maximum pixels of a full image that these functions decode: a damaged header may state any
  /// size.
  static let maximumPixels = 1_000_000

  /// Decodes with the scaled decoder; `nil` if it leaves the JPEG to libjpeg.
  static func reduced(_ bytes: [UInt8], by shrink: Int) throws -> Pixels? {
    try reduced(bytes, toEighths: 8 / shrink)
  }

  /// Decodes with the scaled decoder; `nil` if it leaves the JPEG to libjpeg.
  static func reduced(_ bytes: [UInt8], toEighths eighths: Int) throws -> Pixels? {
    try GuardedBytes(bytes).withBytes { buffer in
      guard let decoder = ScaledJPEGDecoder(buffer, eighths: eighths),
        decoder.size.width * decoder.size.height < maximumPixels
      else { return nil }
      let count = decoder.size.width * decoder.bands
      var pixels = Pixels(
        width: decoder.size.width, height: decoder.size.height,
        color: [UInt8](repeating: 0, count: decoder.bands))
      let isWhole = decoder.run(buffer) { y, row in
        pixels.values.replaceSubrange(
          y * count..<(y + 1) * count, with: UnsafeBufferPointer(start: row, count: count))
      }
      return isWhole ? pixels : nil
    }
  }

  /// Decodes a progressive JPEG with the scaled decoder; `nil` if that leaves it to libjpeg.
  static func progressive(_ bytes: [UInt8], toEighths eighths: Int) throws -> Pixels? {
    let isSmall = bytes.withUnsafeBytes { JPEGMarkers.maximumFramePixels(in: $0) < maximumPixels }
    return isSmall ? try reduced(bytes, toEighths: eighths) : nil
  }

  /// Decodes with libjpeg; `nil` if it fails. libvips drops partial last rows and columns, and
  /// cannot open an image without full ones.
  static func libjpeg(_ bytes: [UInt8], by shrink: Int) -> Pixels? {
    guard let size = TestImages.size(of: bytes), min(size.width, size.height) >= shrink,
      size.width * size.height < maximumPixels
    else { return nil }
    return try? Pixels(decoding: bytes, options: "[shrink=\(shrink),fail_on=truncated]")
  }

  /// Returns the mean difference of pixels where neither image is clipped: libjpeg clamps before
  /// and after the colour conversion, the scaled decoder only after.
  static func difference(_ ours: Pixels, to libjpeg: Pixels) -> Double {
    var sum = 0
    var count = 0
    for y in 0..<libjpeg.size.height {
      for x in 0..<libjpeg.size.width {
        let one = ours[x, y]
        let other = libjpeg[x, y]
        guard (one + other).allSatisfy({ 0 < $0 && $0 < 255 }) else { continue }
        sum += zip(one, other).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
        count += one.count
      }
    }
    return count < 40 ? 0 : Double(sum) / Double(count)
  }
}
