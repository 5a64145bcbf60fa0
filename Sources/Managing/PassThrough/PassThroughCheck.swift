// PassThroughCheck: decides from the bytes of an image whether it can be passed through.

import Core

/// The result of inspecting an image's head.
///
/// Nothing is decoded. The check parses containers up to the first byte of pixel data:
/// - JPEG (ISO/IEC 10918-1, annex B)
/// - PNG (PNG 1.2, chapter 3)
/// - GIF (GIF89a)
/// - WebP (RFC 9649)
enum PassThroughCheck: Equatable {
  /// More bytes are needed.
  case incomplete
  /// The image must be processed: another format, rotation, metadata, colours other than sRGB, more
  /// than 8 bits, animation outside GIF and WebP, or unknown content.
  case needsWork
  /// The image is upright sRGB of this size, without metadata. GIF and WebP may be animated.
  /// Comments may follow the pixel data (`StrippedBody`).
  case plain(PixelSize)

  /// The number of bytes to inspect. An image whose pixel data begins later needs work.
  static let limit = 64 << 10

  /// Inspects the first bytes of an image of the given format.
  static func read(_ bytes: UnsafeRawBufferPointer, as format: ImageFormat) -> PassThroughCheck {
    var reader = ByteReader(bytes, order: format == .png ? .big : .little)
    do {
      switch format {
      case .jpeg: return try jpeg(bytes)
      case .png: return try reader.png()
      case .gif: return try reader.gif()
      case .webp: return try reader.webp()
      default: return .needsWork
      }
    } catch {
      return bytes.count < limit ? .incomplete : .needsWork
    }
  }
}

extension PassThroughCheck {
  fileprivate static func plain(width: Int, height: Int) -> PassThroughCheck {
    width > 0 && height > 0 ? .plain(PixelSize(width: width, height: height)) : .needsWork
  }

  // MARK: JPEG

  private static func jpeg(_ bytes: UnsafeRawBufferPointer) throws(EndOfBytes) -> PassThroughCheck {
    var start = ByteReader(bytes)
    guard try start.number(2) == 0xffd8 else { return .needsWork }
    var markers = JPEGMarkers(bytes)
    var size: PassThroughCheck?
    while let marker = try markers.next() {
      switch marker {
      case 0xda: return size ?? .needsWork
      case 0xc0, 0xc1, 0xc2, 0xc4, 0xdb, 0xdd, 0xe0, 0xe2, 0xee: break
      // Metadata, and frame types that browsers do not decode.
      default: return .needsWork
      }
      guard let segment = try markers.segment() else { return .needsWork }
      switch marker {
      // Frames: baseline, extended and progressive, Huffman-coded.
      case 0xc0, 0xc1, 0xc2:
        guard segment.count >= 6, size == nil else { return .needsWork }
        let fields = segment.prefix(6).map(Int.init)
        // Four components are CMYK.
        guard fields[0] == 8, fields[5] == 1 || fields[5] == 3 else { return .needsWork }
        size = plain(width: fields[3] << 8 | fields[4], height: fields[1] << 8 | fields[2])
      case 0xe0: guard isPlainJFIF(segment) else { return .needsWork }
      case 0xe2: guard isSRGBProfile(segment) else { return .needsWork }
      // Tables. Adobe's segment defines the colour encoding.
      default: break
      }
    }
    return .needsWork
  }

  /// Returns whether an APP0 segment is JFIF's without a thumbnail, and not its extension (ISO/IEC
  /// 10918-5, 10.1).
  private static func isPlainJFIF(_ segment: UnsafeRawBufferPointer) -> Bool {
    segment.count == 14 && segment.starts(with: "JFIF\0".utf8) && segment[12] == 0
      && segment[13] == 0
  }

  /// Returns whether an APP2 segment is a complete ICC profile named sRGB. Other profiles need a
  /// conversion.
  private static func isSRGBProfile(_ segment: UnsafeRawBufferPointer) -> Bool {
    let isWhole = segment.starts(with: "ICC_PROFILE\0\u{1}\u{1}".utf8)
    let name = Array("sRGB".utf8)
    guard isWhole, segment.count > 128 else { return false }
    return segment.indices.dropLast(3).contains { segment[$0..<$0 + 4].elementsEqual(name) }
  }
}

extension ByteReader {
  // MARK: PNG

  fileprivate mutating func png() throws(EndOfBytes) -> PassThroughCheck {
    guard try take(8).elementsEqual([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
      try number(4) == 13, try take(4).elementsEqual("IHDR".utf8)
    else { return .needsWork }
    let width = try number(4)
    let height = try number(4)
    let depth = try byte()
    // Colour type, compression, filter, interlace, and the checksum.
    _ = try take(4 + 4)
    // Sides of 2³¹ pixels or more are invalid (PNG 1.2, section 11.2.2).
    guard depth <= 8, width <= Int32.max, height <= Int32.max else { return .needsWork }
    var colour = PNGColour()
    var isBehindPalette = false
    while true {
      let length = try number(4)
      let kind = String(decoding: try take(4), as: UTF8.self)
      switch kind {
      case "IDAT":
        return colour.isForeign ? .needsWork : PassThroughCheck.plain(width: width, height: height)
      case "sRGB", "gAMA", "cHRM":
        let content = try take(length + 4).dropLast(4)
        // Decoders ignore these chunks after a palette (PNG, table 7).
        if !isBehindPalette { colour.take(kind, content: content) }
      case "PLTE", "tRNS", "pHYs", "bKGD", "sBIT", "hIST":
        isBehindPalette = isBehindPalette || kind == "PLTE"
        _ = try take(length + 4)
      default: return .needsWork
      }
    }
  }

  // MARK: GIF

  fileprivate mutating func gif() throws(EndOfBytes) -> PassThroughCheck {
    let signature = try take(6)
    guard signature.elementsEqual("GIF89a".utf8) || signature.elementsEqual("GIF87a".utf8) else {
      return .needsWork
    }
    let width = try number(2)
    let height = try number(2)
    let flags = try byte()
    _ = try take(2)
    if flags & 0x80 != 0 { _ = try take(3 << (Int(flags & 7) + 1)) }
    while true {
      switch try byte() {
      case 0x2c: return PassThroughCheck.plain(width: width, height: height)
      case 0x21:
        let label = try byte()
        let first = try take(Int(try byte()))
        guard !first.isEmpty else { continue }
        // Accepts only a graphic control extension or an animation loop count.
        guard label == 0xf9 || (label == 0xff && first.elementsEqual("NETSCAPE2.0".utf8)) else {
          return .needsWork
        }
        while case let count = Int(try byte()), count > 0 { _ = try take(count) }
      default: return .needsWork
      }
    }
  }

  // MARK: WebP

  fileprivate mutating func webp() throws(EndOfBytes) -> PassThroughCheck {
    guard try take(4).elementsEqual("RIFF".utf8) else { return .needsWork }
    _ = try take(4)
    guard try take(4).elementsEqual("WEBP".utf8) else { return .needsWork }
    let kind = String(decoding: try take(4), as: UTF8.self)
    _ = try take(4)
    switch kind {
    case "VP8 ":
      // The lowest bit of the frame tag is 0 for a key frame. The start code follows (RFC 6386,
      // section 9.1).
      guard try byte() & 1 == 0 else { return .needsWork }
      _ = try take(2)
      guard try take(3).elementsEqual([0x9d, 0x01, 0x2a]) else { return .needsWork }
      let width = try number(2)
      let height = try number(2)
      return PassThroughCheck.plain(width: width & 0x3fff, height: height & 0x3fff)
    case "VP8L":
      guard try byte() == 0x2f else { return .needsWork }
      let bits = try number(4)
      return PassThroughCheck.plain(width: bits & 0x3fff + 1, height: bits >> 14 & 0x3fff + 1)
    case "VP8X":
      // Flags for an ICC profile, Exif and XMP.
      guard try byte() & 0x2c == 0 else { return .needsWork }
      _ = try take(3)
      let width = try number(3)
      let height = try number(3)
      return PassThroughCheck.plain(width: width + 1, height: height + 1)
    default: return .needsWork
    }
  }
}

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
