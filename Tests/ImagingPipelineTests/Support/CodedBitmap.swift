// CodedBitmap: BMPs and icons written byte by byte, of kinds that no encoder writes.

import Model
import TestSupport

/// A bitmap that is given in parts, as the file stores them.
struct CodedBitmap {
  let size: PixelSize
  /// Bits per pixel.
  let depth: Int
  /// The header length: 12, 40, 52, 56, 64, 108 or 124.
  var headerLength = 40
  /// The compression: 0 none, 1 RLE8, 2 RLE4, 3 masks, 6 masks with alpha.
  var compression = 0
  var isTopDown = false
  /// Colours of three bytes, red first.
  var palette: [[UInt8]] = []
  /// Whether the header states the number of colours.
  var saysColors = true
  var masks: [UInt32] = []
  /// Pixels from top to bottom, `depth` bits each.
  var pixels: [UInt32] = []
  /// Run-length data in place of the pixels.
  var runs: [UInt8]?
  var profile: [UInt8] = []
  /// An icon's mask: whether each pixel, from top to bottom, is transparent.
  var clear: [Bool] = []

  /// Returns rows padded to 32 bits, in the order of the file.
  private func packed(_ values: [UInt32], depth: Int) -> [UInt8] {
    let rows = (0..<size.height).map { y in
      var (bytes, bits, count): ([UInt8], UInt64, Int) = ([], 0, 0)
      for value in values[y * size.width..<(y + 1) * size.width] {
        if depth >= 8 {
          bytes += (0..<depth / 8).map { UInt8(value >> UInt32(8 * $0) & 255) }
          continue
        }
        (bits, count) = (bits << UInt64(depth) | UInt64(value), count + depth)
        if count == 8 {
          bytes.append(UInt8(bits & 255))
          (bits, count) = (0, 0)
        }
      }
      if count > 0 { bytes.append(UInt8(bits << UInt64(8 - count) & 255)) }
      return bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4)
    }
    return Array((isTopDown ? rows : rows.reversed()).joined())
  }

  private func table() -> [UInt8] {
    palette.flatMap { $0.reversed() + (headerLength == 12 ? [] : [0]) }
  }

  private func header(height: Int) -> [UInt8] {
    var bytes = little(headerLength, 4)
    if headerLength == 12 {
      return bytes + little(size.width, 2) + little(height, 2) + little(1, 2) + little(depth, 2)
    }
    bytes += little(size.width, 4) + little(isTopDown ? -height : height, 4) + little(1, 2)
    bytes += little(depth, 2) + little(compression, 4) + little(0, 12)
    bytes += little(saysColors ? palette.count : 0, 4) + little(0, 4)
    if headerLength != 64 { for mask in masks { bytes += little(Int(mask), 4) } }
    bytes += [UInt8](repeating: 0, count: max(0, headerLength - bytes.count))
    if !profile.isEmpty {
      bytes.replaceSubrange(56..<60, with: little(0x4d42_4544, 4))
      bytes.replaceSubrange(112..<120, with: little(headerLength, 4) + little(profile.count, 4))
    }
    return bytes
  }

  /// A BMP; the profile is between header and pixels.
  var file: [UInt8] {
    let head = header(height: size.height) + table() + profile
    let body = runs ?? packed(pixels, depth: depth)
    return Array("BM".utf8) + little(14 + head.count + body.count, 4) + little(0, 4)
      + little(14 + head.count, 4) + head + body
  }

  /// The bitmap as an icon stores it.
  var icon: [UInt8] {
    header(height: 2 * size.height) + table() + packed(pixels, depth: depth)
      + (clear.isEmpty ? [] : packed(clear.map { $0 ? 1 : 0 }, depth: 1))
  }

  /// Returns an icon with these images; the sizes in its directory are wrong.
  static func icon(of images: [[UInt8]]) -> [UInt8] {
    var (directory, data): ([UInt8], [UInt8]) = ([], [])
    for image in images {
      directory += [16, 16, 0, 0] + little(1, 2) + little(32, 2) + little(image.count, 4)
      directory += little(6 + 16 * images.count + data.count, 4)
      data += image
    }
    return [0, 0, 1, 0] + little(images.count, 2) + directory + data
  }

  /// Returns a little-endian number.
  private func little(_ number: Int, _ width: Int) -> [UInt8] { Self.little(number, width) }
  static func little(_ number: Int, _ width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> (8 * $0) : 0) }
  }
}
