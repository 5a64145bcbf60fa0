// Stripping: removes the metadata of a file without decoding it; all other bytes stay the same.

import CDeflate
import Model
import Platform

/// Drops everything that is not needed to show the image. Returns `nil` for a file with unknown
/// parts, which is then re-encoded.
enum Stripping {
  /// Returns the file without metadata, for an image in sRGB.
  static func stripped(_ file: UnsafeRawBufferPointer, as format: ImageFormat) -> [UInt8]? {
    switch format {
    case .jpeg: JPEGStripping.stripped(file)
    case .png: PNGStripping.stripped(file)
    case .webp: WebPStripping.stripped(file)
    default: nil
    }
  }
}

/// Strips the chunks of a PNG (third edition).
private enum PNGStripping {
  /// The chunks that affect how pixels are shown.
  private static let kept: Set<String> = [
    "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "cICP", "sRGB", "gAMA", "cHRM", "pHYs", "bKGD", "sBIT",
    "hIST",
  ]

  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    var reader = ByteReader(file)
    guard let signature = try? reader.take(8) else { return nil }
    var result = Array(signature)
    result.reserveCapacity(file.count)
    // A profile overrides these chunks, so they must not take effect when the profile is dropped.
    let hasProfile = PNGColour(of: file).hasProfile
    while true {
      let start = reader.position
      guard let length = try? reader.number(4), let checked = try? reader.take(4 + length),
        let checksum = try? reader.number(4)
      else { return nil }
      let name = String(decoding: checked.prefix(4), as: UTF8.self)
      // Decoders skip a chunk with a wrong checksum or refuse the file. A file whose pixels need the chunk was refused
      // before.
      let isDamaged = libdeflate_crc32(0, checked.baseAddress, checked.count) != checksum
      let isDropped =
        !kept.contains(name) || (hasProfile && ["gAMA", "cHRM"].contains(name)) || isDamaged
      // A name's first letter tells whether it may be left out (5.4): capitals may not.
      guard !isDropped || name.first?.isLowercase == true else { return nil }
      // A result has at most 8 bits per sample.
      if name == "IHDR", length < 9 || file[start + 16] > 8 { return nil }
      if !isDropped { result += file[start..<reader.position] }
      if name == "IEND" { return result }
    }
  }
}

/// Strips the RIFF chunks of a WebP (RFC 9649).
private enum WebPStripping {
  /// The flags kept in the extended header: alpha and animation.
  private static let flagsKept: UInt8 = 0x12
  private static let pixels = ["VP8 ", "VP8L", "ALPH"]

  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    var reader = ByteReader(file, order: .little)
    guard (try? reader.name()) == "RIFF", let size = try? reader.number(4),
      (try? reader.name()) == "WEBP", let content = try? reader.take(size - 4),
      let chunks = chunks(content)
    else { return nil }
    var kept: [(name: String, content: [UInt8])] = []
    for (name, content) in chunks {
      switch name {
      case "VP8X":
        guard content.count == 10 else { return nil }
        kept.append((name, [content[0] & flagsKept] + content.dropFirst()))
      case "ANMF":
        // The frame's position and duration, followed by its own chunks.
        guard content.count >= 16,
          let parts = Self.chunks(UnsafeRawBufferPointer(rebasing: content[16...]))
        else { return nil }
        let frame = parts.filter { pixels.contains($0.name) }
        let encodedFrame = frame.flatMap { encoded($0.name, content: Array($0.content)) }
        kept.append((name, Array(content.prefix(16)) + encodedFrame))
      case "ANIM": kept.append((name, Array(content)))
      default: if pixels.contains(name) { kept.append((name, Array(content))) }
      }
    }
    // A file without alpha or frames needs no extended header.
    if kept.count == 2, kept[0].name == "VP8X", kept[0].content[0] == 0 { kept.removeFirst() }
    guard !kept.isEmpty else { return nil }
    let body = Array("WEBP".utf8) + kept.flatMap { encoded($0.name, content: $0.content) }
    return Array("RIFF".utf8) + little(body.count) + body
  }

  private static func chunks(
    _ bytes: UnsafeRawBufferPointer
  ) -> [(name: String, content: UnsafeRawBufferPointer)]? {
    var reader = ByteReader(bytes, order: .little)
    var chunks: [(name: String, content: UnsafeRawBufferPointer)] = []
    while !reader.isAtEnd {
      guard let name = try? reader.name(), let length = try? reader.number(4),
        let content = try? reader.take(length)
      else { return nil }
      // A padding byte follows an odd length; it may be missing at the end.
      if !length.isMultiple(of: 2) { reader.skip(1) }
      chunks.append((name, content))
    }
    return chunks
  }

  private static func encoded(_ name: String, content: [UInt8]) -> [UInt8] {
    Array(name.utf8) + little(content.count) + content + (content.count % 2 == 1 ? [0] : [])
  }

  private static func little(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(number >> (8 * $0) & 255) }
  }
}
