// Stripping: a file without its metadata, byte by byte the same otherwise; nothing is decoded.

import CDeflate
import Model

/// Drops what is not needed to show the image. All of it gives `nil` for what it does not understand: such a file is
/// encoded again.
enum Stripping {
  /// The file without metadata, for an image in sRGB.
  static func stripped(_ file: UnsafeRawBufferPointer, as format: ImageFormat) -> [UInt8]? {
    switch format {
    case .jpeg: JPEGStripping.stripped(file)
    case .png: PNGStripping.stripped(file)
    case .webp: WebPStripping.stripped(file)
    default: nil
    }
  }
}

/// Reads a file from its beginning to its end, and never past that.
struct FileCursor {
  private let bytes: UnsafeRawBufferPointer
  private(set) var position = 0

  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  var isAtEnd: Bool { position == bytes.count }

  /// The next bytes; `nil` where there are fewer.
  mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
    guard count >= 0, count <= bytes.count - position else { return nil }
    defer { position += count }
    return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
  }

  mutating func byte() -> UInt8? { take(1)?[0] }

  /// An unsigned number of 1 to 4 bytes, the highest first.
  mutating func big(_ width: Int) -> Int? { take(width)?.reduce(0) { $0 << 8 | Int($1) } }

  /// The same, the lowest first.
  mutating func little(_ width: Int) -> Int? {
    take(width)?.reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// A name of four letters.
  mutating func name() -> String? { take(4).map { String(decoding: $0, as: UTF8.self) } }
}

/// PNG (third edition): chunks.
private enum PNGStripping {
  /// Says how the pixels are meant, and nothing else.
  private static let kept: Set<String> = [
    "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "sRGB", "gAMA", "cHRM", "pHYs", "bKGD", "sBIT", "hIST",
  ]

  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    var cursor = FileCursor(file)
    guard let signature = cursor.take(8) else { return nil }
    var result = Array(signature)
    result.reserveCapacity(file.count)
    // What a profile goes before counts for nothing, and must not begin to when the profile is gone.
    let hasProfile = PNGColour(of: file).hasProfile
    while true {
      let start = cursor.position
      guard let length = cursor.big(4), let checked = cursor.take(4 + length),
        let checksum = cursor.big(4)
      else { return nil }
      let name = String(decoding: checked.prefix(4), as: UTF8.self)
      // Decoders leave out a chunk whose checksum is wrong, or refuse the file; where pixels need it, it was refused here.
      let isDamaged = libdeflate_crc32(0, checked.baseAddress, checked.count) != checksum
      let isDropped =
        !kept.contains(name) || (hasProfile && ["gAMA", "cHRM"].contains(name)) || isDamaged
      // A name's first letter tells whether it may be left out (5.4): capitals may not.
      guard !isDropped || name.first?.isLowercase == true else { return nil }
      // More than 8 bits are more than a result has.
      if name == "IHDR", length < 9 || file[start + 16] > 8 { return nil }
      if !isDropped { result += file[start..<cursor.position] }
      if name == "IEND" { return result }
    }
  }
}

/// WebP (RFC 9649): a RIFF container.
private enum WebPStripping {
  /// Of the extended header's flags: that there is an alpha, an animation.
  private static let flagsKept: UInt8 = 0x12
  private static let pixels = ["VP8 ", "VP8L", "ALPH"]

  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    var cursor = FileCursor(file)
    guard cursor.name() == "RIFF", let size = cursor.little(4), cursor.name() == "WEBP",
      let content = cursor.take(size - 4), let chunks = chunks(content)
    else { return nil }
    var kept: [(name: String, content: [UInt8])] = []
    for (name, content) in chunks {
      switch name {
      case "VP8X":
        guard content.count == 10 else { return nil }
        kept.append((name, [content[0] & flagsKept] + content.dropFirst()))
      case "ANMF":
        // The frame's place and time, then chunks of its own.
        guard content.count >= 16,
          let parts = Self.chunks(UnsafeRawBufferPointer(rebasing: content[16...]))
        else { return nil }
        let frame = parts.filter { pixels.contains($0.name) }
        let encodedFrame = frame.flatMap { encoded($0.name, Array($0.content)) }
        kept.append((name, Array(content.prefix(16)) + encodedFrame))
      case "ANIM": kept.append((name, Array(content)))
      default: if pixels.contains(name) { kept.append((name, Array(content))) }
      }
    }
    // What has neither alpha nor frames needs no extended header.
    if kept.count == 2, kept[0].name == "VP8X", kept[0].content[0] == 0 { kept.removeFirst() }
    guard !kept.isEmpty else { return nil }
    let body = Array("WEBP".utf8) + kept.flatMap { encoded($0.name, $0.content) }
    return Array("RIFF".utf8) + little(body.count) + body
  }

  private static func chunks(
    _ bytes: UnsafeRawBufferPointer
  ) -> [(name: String, content: UnsafeRawBufferPointer)]? {
    var cursor = FileCursor(bytes)
    var chunks: [(name: String, content: UnsafeRawBufferPointer)] = []
    while !cursor.isAtEnd {
      guard let name = cursor.name(), let length = cursor.little(4),
        let content = cursor.take(length)
      else { return nil }
      // A byte of padding follows an odd one; the last one's may be missing.
      if !length.isMultiple(of: 2), !cursor.isAtEnd { _ = cursor.byte() }
      chunks.append((name, content))
    }
    return chunks
  }

  private static func encoded(_ name: String, _ content: [UInt8]) -> [UInt8] {
    Array(name.utf8) + little(content.count) + content + (content.count % 2 == 1 ? [0] : [])
  }

  private static func little(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(number >> (8 * $0) & 255) }
  }
}
