// CodedPNG: PNGs of every colour type and depth, written from pixel values.

import Core

/// A PNG (PNG 1.2) that is given as stored samples; its data is not compressed.
public struct CodedPNG: Sendable {
  /// The size in pixels.
  public let size: PixelSize
  /// The colour type: 0 grey, 2 RGB, 3 palette, 4 grey and alpha, 6 RGBA.
  public let colorType: Int
  /// Bits per sample.
  public let depth: Int
  /// The samples row by row, `channels` for each pixel.
  public var samples: [Int]
  /// Whether the rows are stored in Adam7's passes.
  public var isInterlaced = false
  /// The rows' filters, in turn. Samples are stored as given, so filters change the pixels.
  public var filters: [UInt8] = [0]
  /// The bytes of each chunk of the data; `nil` for a single chunk.
  public var chunkBytes: Int?
  /// The first two bytes of the zlib stream: its window and a check (RFC 1950, 2.2).
  public var headOfStream: [UInt8] = [0x78, 0x01]
  /// Chunks between the header and the data: name and content.
  public var before: [(name: String, content: [UInt8])] = []
  /// Chunks between the data and the end.
  public var after: [(name: String, content: [UInt8])] = []

  /// Creates an image of samples.
  public init(
    size: PixelSize, colorType: Int, depth: Int, samples: [Int], isInterlaced: Bool = false,
    before: [(name: String, content: [UInt8])] = [], after: [(name: String, content: [UInt8])] = []
  ) {
    self.size = size
    self.colorType = colorType
    self.depth = depth
    self.samples = samples
    self.isInterlaced = isInterlaced
    self.before = before
    self.after = after
  }

  /// The first bytes of each PNG.
  public static let signature: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]

  /// Returns the samples per pixel of a colour type.
  public static func channels(_ colorType: Int) -> Int { [1, 0, 3, 1, 2, 0, 4][colorType] }

  /// First column, first row and steps of Adam7's passes (PNG, second edition, 8.2).
  static let passes = [
    (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
    (0, 1, 1, 2),
  ]

  /// The file.
  public var bytes: [UInt8] {
    let header =
      Self.big(size.width, width: 4) + Self.big(size.height, width: 4)
      + [UInt8(depth), UInt8(colorType), 0, 0, isInterlaced ? 1 : 0]
    var bytes = Self.signature
    bytes += Self.chunk("IHDR", content: header)
    for (name, content) in before { bytes += Self.chunk(name, content: content) }
    let data = data
    let length = chunkBytes ?? data.count
    for start in stride(from: 0, to: data.count, by: length) {
      bytes += Self.chunk("IDAT", content: Array(data[start..<min(start + length, data.count)]))
    }
    for (name, content) in after { bytes += Self.chunk(name, content: content) }
    return bytes + Self.chunk("IEND", content: [])
  }

  /// The content of the data chunk, also used after the sequence number in animations.
  public var data: [UInt8] {
    let passes = isInterlaced ? Self.passes : [(0, 0, 1, 1)]
    return headOfStream
      + Self.stored(passes.flatMap { rows(from: $0.0, top: $0.1, by: $0.2, down: $0.3) })
  }

  /// Returns the rows of a pass, each after the byte of its filter.
  private func rows(from left: Int, top: Int, by right: Int, down: Int) -> [UInt8] {
    guard left < size.width else { return [] }
    let channels = Self.channels(colorType)
    return stride(from: top, to: size.height, by: down).flatMap { y in
      var row = [filters[y % filters.count]]
      var bits = 0
      var count = 0
      for x in stride(from: left, to: size.width, by: right) {
        for channel in 0..<channels {
          bits = bits << depth | samples[(y * size.width + x) * channels + channel]
          count += depth
          while count >= 8 {
            row.append(UInt8(bits >> (count - 8) & 255))
            count -= 8
          }
          bits &= 1 << count - 1
        }
      }
      if count > 0 { row.append(UInt8(bits << (8 - count) & 255)) }
      return row
    }
  }

  /// Returns uncompressed deflate blocks (RFC 1951, 3.2.4), and a zlib stream's end.
  private static func stored(_ data: [UInt8]) -> [UInt8] {
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: data.count, by: 65_535) {
      let block = data[start..<min(start + 65_535, data.count)]
      let count = [UInt8(block.count & 255), UInt8(block.count >> 8)]
      bytes += [block.endIndex == data.count ? 1 : 0] + count + count.map { ~$0 } + block
    }
    let (a, b) = data.reduce((1, 0)) { sums, byte in
      let a = (sums.0 + Int(byte)) % 65_521
      return (a, (sums.1 + a) % 65_521)
    }
    return bytes + big(b << 16 | a, width: 4)
  }

  /// Returns a PNG with Exif after its header: a TIFF directory with only the orientation (EXIF
  /// 2.32, 4.6.4).
  public static func adding(orientation: Int, to png: [UInt8]) -> [UInt8] {
    let entry =
      big(0x0112, width: 2) + big(3, width: 2) + big(1, width: 4) + big(orientation, width: 2) + [
        0, 0,
      ]
    let exif =
      Array("MM".utf8) + big(42, width: 2) + big(8, width: 4) + big(1, width: 2) + entry
      + big(0, width: 4)
    // Signature and header have 33 bytes.
    return png[..<33] + chunk("eXIf", content: exif) + png[33...]
  }

  /// Returns a chunk with its length and checksum.
  public static func chunk(_ name: String, content: [UInt8]) -> [UInt8] {
    let named = Array(name.utf8) + content
    return big(content.count, width: 4) + named + crc32(of: named[...])
  }

  /// Returns the CRC-32 of a chunk's name and content (ISO/IEC 15948, annex D), most significant
  /// byte first.
  public static func crc32(of bytes: ArraySlice<UInt8>) -> [UInt8] {
    var crc: UInt32 = 0xffff_ffff
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
    }
    return big(Int(~crc), width: 4)
  }

  /// Returns a big-endian number of `width` bytes.
  public static func big(_ number: Int, width: Int) -> [UInt8] {
    (0..<width).reversed().map { UInt8(number >> (8 * $0) & 255) }
  }
}
