// TrailingDataCheck: checks a whole image for metadata and appended data.

import Core

/// Scans images with a plain head (see `PassThroughCheck`) for comments, Exif, text and appended
/// data.
enum TrailingDataCheck {
  /// The chunks of a PNG that are not metadata.
  static let plainChunks: Set = [
    "IHDR", "IDAT", "PLTE", "tRNS", "sRGB", "gAMA", "cHRM", "pHYs", "bKGD", "sBIT", "hIST", "IEND",
  ]

  /// Returns whether the image contains only pixel data. Always `false` for unsupported formats.
  static func isClean(_ bytes: UnsafeRawBufferPointer, as format: ImageFormat) -> Bool {
    var markers = JPEGMarkers(bytes)
    var reader = ByteReader(bytes, order: format == .png ? .big : .little)
    do {
      return switch format {
      case .jpeg: try markers.isClean()
      case .png: try reader.isCleanPNG() && reader.isAtEnd
      case .gif: try reader.isCleanGIF() && reader.isAtEnd
      case .webp: try reader.isCleanWebP()
      default: false
      }
    } catch {
      return false
    }
  }
}

extension JPEGMarkers {
  /// Walks the segments, and the entropy-coded data between them after the first scan (ISO/IEC
  /// 10918-1, B.1.1). Returns whether nothing else is there, up to the end of the bytes.
  fileprivate mutating func isClean() throws(EndOfBytes) -> Bool {
    var isBehindScan = false
    while let marker = try next() {
      switch marker {
      case 0xd9: return left == 0
      // Application segments in the head define the colour encoding. After a scan they are foreign
      // data.
      case 0xe0...0xef where isBehindScan: return false
      case 0xfe: return false
      default: break
      }
      guard try segment() != nil else { return false }
      guard marker == 0xda else { continue }
      isBehindScan = true
      try skipScan()
    }
    return false
  }
}

extension ByteReader {
  fileprivate mutating func isCleanPNG() throws(EndOfBytes) -> Bool {
    _ = try take(8)
    while true {
      let length = try number(4)
      let kind = String(decoding: try take(4), as: UTF8.self)
      _ = try take(length + 4)
      guard TrailingDataCheck.plainChunks.contains(kind) else { return false }
      if kind == "IEND" { return true }
    }
  }

  fileprivate mutating func isCleanGIF() throws(EndOfBytes) -> Bool {
    _ = try take(10)
    let flags = try byte()
    _ = try take(2)
    try skipColours(flags)
    while true {
      switch try byte() {
      case 0x3b: return true
      case 0x2c:
        _ = try take(8)
        try skipColours(try byte())
        // The minimum code size of LZW.
        _ = try byte()
      case 0x21:
        let label = try byte()
        let first = try take(Int(try byte()))
        guard !first.isEmpty else { continue }
        guard label == 0xf9 || (label == 0xff && first.elementsEqual("NETSCAPE2.0".utf8)) else {
          return false
        }
      default: return false
      }
      while case let count = Int(try byte()), count > 0 { _ = try take(count) }
    }
  }

  private mutating func skipColours(_ flags: UInt8) throws(EndOfBytes) {
    if flags & 0x80 != 0 { _ = try take(3 << (Int(flags & 7) + 1)) }
  }

  fileprivate mutating func isCleanWebP() throws(EndOfBytes) -> Bool {
    _ = try take(4)
    guard try number(4) == bytes.count - 8 else { return false }
    _ = try take(4)
    while !isAtEnd {
      let kind = String(decoding: try take(4), as: UTF8.self)
      let length = try number(4)
      _ = try take(length + length % 2)
      guard ["VP8 ", "VP8L", "VP8X", "ALPH", "ANIM", "ANMF"].contains(kind) else { return false }
    }
    return true
  }
}
