// CodedBitmap: BMPs and icons written byte by byte, of kinds that no encoder writes.

import Core

/// A bitmap that is given in parts, as the file stores them.
public struct CodedBitmap: Sendable {
  /// The size in pixels.
  public let size: PixelSize
  /// Bits per pixel.
  public let depth: Int
  /// The header length: 12, 40, 52, 56, 64, 108 or 124.
  public var headerLength = 40
  /// The compression: 0 none, 1 RLE8, 2 RLE4, 3 masks, 6 masks with alpha.
  public var compression = 0
  /// Whether the first row of the file is the top row.
  public var isTopDown = false
  /// Colours of three bytes, red first.
  public var palette: [[UInt8]] = []
  /// Whether the header states the number of colours.
  public var saysColors = true
  /// The masks of red, green, blue and alpha, if the compression has masks.
  public var masks: [UInt32] = []
  /// Pixels from top to bottom, `depth` bits each.
  public var pixels: [UInt32] = []
  /// Run-length data in place of the pixels.
  public var runs: [UInt8]?
  /// The ICC profile.
  public var profile: [UInt8] = []
  /// An icon's mask: whether each pixel, from top to bottom, is transparent.
  public var clear: [Bool] = []

  /// Creates an uncompressed bitmap without pixels.
  public init(size: PixelSize, depth: Int) {
    self.size = size
    self.depth = depth
  }

  /// Returns rows padded to 32 bits, in the order of the file.
  private func packed(_ values: [UInt32], depth: Int) -> [UInt8] {
    let rows = (0..<size.height).map { y in
      var bytes: [UInt8] = []
      var bits: UInt64 = 0
      var count = 0
      for value in values[y * size.width..<(y + 1) * size.width] {
        if depth >= 8 {
          bytes += (0..<depth / 8).map { UInt8(value >> UInt32(8 * $0) & 255) }
          continue
        }
        bits = bits << UInt64(depth) | UInt64(value)
        count += depth
        if count == 8 {
          bytes.append(UInt8(bits & 255))
          bits = 0
          count = 0
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
    var bytes = little(headerLength, width: 4)
    if headerLength == 12 {
      return bytes + little(size.width, width: 2) + little(height, width: 2) + little(1, width: 2)
        + little(depth, width: 2)
    }
    bytes +=
      little(size.width, width: 4) + little(isTopDown ? -height : height, width: 4)
      + little(1, width: 2)
    bytes += little(depth, width: 2) + little(compression, width: 4) + little(0, width: 12)
    bytes += little(saysColors ? palette.count : 0, width: 4) + little(0, width: 4)
    if headerLength != 64 { for mask in masks { bytes += little(Int(mask), width: 4) } }
    bytes += [UInt8](repeating: 0, count: max(0, headerLength - bytes.count))
    // OS/2 headers may end after any field.
    if headerLength < 40 { return Array(bytes.prefix(headerLength)) }
    if !profile.isEmpty {
      bytes.replaceSubrange(56..<60, with: little(0x4d42_4544, width: 4))
      bytes.replaceSubrange(
        112..<120, with: little(headerLength, width: 4) + little(profile.count, width: 4))
    }
    return bytes
  }

  /// A BMP; the profile is between header and pixels.
  public var file: [UInt8] {
    let head = header(height: size.height) + table() + profile
    let body = runs ?? packed(pixels, depth: depth)
    return Array("BM".utf8) + little(14 + head.count + body.count, width: 4) + little(0, width: 4)
      + little(14 + head.count, width: 4) + head + body
  }

  /// The bitmap as an icon stores it.
  public var icon: [UInt8] {
    header(height: 2 * size.height) + table() + packed(pixels, depth: depth)
      + (clear.isEmpty ? [] : packed(clear.map { $0 ? 1 : 0 }, depth: 1))
  }

  /// Returns an icon with these images; the sizes in its directory are wrong.
  public static func icon(of images: [[UInt8]]) -> [UInt8] {
    var directory: [UInt8] = []
    var data: [UInt8] = []
    for image in images {
      directory +=
        [16, 16, 0, 0] + little(1, width: 2) + little(32, width: 2) + little(image.count, width: 4)
      directory += little(6 + 16 * images.count + data.count, width: 4)
      data += image
    }
    return [0, 0, 1, 0] + little(images.count, width: 2) + directory + data
  }

  /// Returns a little-endian number.
  private func little(_ number: Int, width: Int) -> [UInt8] { Self.little(number, width: width) }

  /// Returns a little-endian number of `width` bytes.
  public static func little(_ number: Int, width: Int) -> [UInt8] {
    (0..<width).map { UInt8(truncatingIfNeeded: $0 < 8 ? number >> (8 * $0) : 0) }
  }
}
