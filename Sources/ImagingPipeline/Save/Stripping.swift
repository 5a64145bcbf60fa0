// Stripping: removes the metadata of a file without decoding it; all other bytes stay the same.

import Core

/// Drops everything that is not needed to show the image. Returns `nil` for a file with unknown
/// parts, which is then re-encoded.
enum Stripping {
  /// Returns the file without metadata, for an image in sRGB.
  static func stripped(_ file: UnsafeRawBufferPointer, as format: ImageFormat) -> [UInt8]? {
    format.codec.stripped(file)
  }

  /// The chunks of a PNG (third edition) that affect how pixels are shown.
  private static let keptOfPNG: Set<String> = [
    "IHDR", "PLTE", "IDAT", "IEND", "tRNS", "cICP", "sRGB", "gAMA", "cHRM", "pHYs", "bKGD", "sBIT",
    "hIST",
  ]

  static func strippedPNG(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard file.count > 25 else { return nil }
    var chunks = PNGChunks(file)
    var result = Array(file[..<chunks.position])
    result.reserveCapacity(file.count)
    // A profile overrides these chunks, so they must not take effect when the profile is dropped.
    let hasProfile = PNGColour(of: file).hasProfile
    while true {
      let start = chunks.position
      guard let chunk = try? chunks.next() else { return nil }
      let name = String(decoding: chunk.type, as: UTF8.self)
      // Decoders skip a chunk with a wrong checksum or refuse the file. A file whose pixels need
      // the chunk was refused before.
      let isDropped =
        !keptOfPNG.contains(name) || (hasProfile && ["gAMA", "cHRM"].contains(name))
        || !chunk.isIntact
      // A name's first letter tells whether it may be left out (5.4): capitals may not.
      guard !isDropped || !chunk.isCritical else { return nil }
      // A result has at most 8 bits per sample.
      if name == "IHDR", chunk.content.count < 9 || chunk.content[8] > 8 { return nil }
      if !isDropped { result += file[start..<chunks.position] }
      if name == "IEND" { return result }
    }
  }

  /// Copies or drops the segments of a JPEG (ISO/IEC 10918-1, annex B); `nil` also for kinds that
  /// browsers do not draw.
  static func strippedJPEG(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard file.starts(with: [0xff, 0xd8]) else { return nil }
    var markers = JPEGMarkers(file)
    var result: [UInt8] = [0xff, 0xd8]
    result.reserveCapacity(file.count)
    var hasJFIF = false
    var hasAdobe = false
    var hasFrame = false
    var hasScan = false
    while true {
      guard let marker = try? markers.next() else { return nil }
      if marker == 0xd9 {
        guard hasScan else { return nil }
        return result + [0xff, 0xd9]
      }
      let start = markers.position
      guard let content = try? markers.segment() else { return nil }
      func keep(_ bytes: some Sequence<UInt8>) {
        result += [0xff, marker]
        result += bytes
      }
      switch marker {
      // Frames: baseline, extended and progressive, all Huffman-coded with 8 bits. Four components
      // would be CMYK.
      case 0xc0, 0xc1, 0xc2:
        guard !hasFrame, content.count >= 6, content[0] == 8, [1, 3].contains(content[5]) else {
          return nil
        }
        hasFrame = true
        keep(file[start..<markers.position])
      // Huffman tables, quantization tables, restart interval, number of lines.
      case 0xc4, 0xdb, 0xdd, 0xdc: keep(file[start..<markers.position])
      case 0xda:
        guard hasFrame else { return nil }
        hasScan = true
        keep(file[start..<markers.position])
        let scan = markers.position
        guard (try? markers.skipScan()) != nil else { return nil }
        result += file[scan..<markers.position]
      case 0xe0
      where !hasJFIF && !hasScan && content.count >= 14
        && content.starts(with: "JFIF\0".utf8):
        hasJFIF = true
        // Drops the thumbnail, whose two sides are the last bytes of the fixed part.
        keep([0, 16] + content.prefix(12) + [0, 0])
      case 0xee
      where !hasAdobe && !hasScan && content.count >= 12
        && content.starts(with: "Adobe".utf8):
        hasAdobe = true
        keep([0, 14] + content.prefix(12))
      // With two Adobe segments, decoders disagree on which one applies.
      case 0xee where content.count >= 12 && content.starts(with: "Adobe".utf8): return nil
      case 0xe0...0xef, 0xfe: break
      default: return nil
      }
    }
  }

  /// The flags kept in the extended header: alpha and animation.
  private static let flagsKept: UInt8 = 0x12
  private static let pixelChunks = ["VP8 ", "VP8L", "ALPH"]

  /// Strips a WebP of all but its pixels; `nil` if it is damaged. libvips writes Exif without
  /// information into every WebP, even with `strip`.
  static func strippedWebP(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard FormatSigns.format(of: file) == .webp else { return nil }
    do throws(ContainerFault) {
      var chunks = try WebPChunks(of: file)
      var kept: [UInt8] = []
      var names: [String] = []
      while let (name, content) = try chunks.next() {
        switch name {
        case "VP8X":
          guard content.count == 10 else { return nil }
          append(name, [content[0] & flagsKept] + content.dropFirst(), to: &kept)
        case "ANMF":
          guard var frame = WebPChunks(ofFrame: content) else { return nil }
          var parts = Array(content.prefix(16))
          while let (name, content) = try frame.next() {
            if pixelChunks.contains(name) { append(name, content, to: &parts) }
          }
          append(name, parts, to: &kept)
        case "ANIM", "VP8 ", "VP8L", "ALPH": append(name, content, to: &kept)
        default: continue
        }
        names.append(name)
      }
      guard !names.isEmpty else { return nil }
      // A file without alpha or frames needs no extended header, which has 18 bytes.
      if names.count == 2, names[0] == "VP8X", kept[8] == 0 { kept.removeFirst(18) }
      var result = Array("RIFF".utf8) + little(4 + kept.count) + Array("WEBP".utf8)
      result += kept
      return result
    } catch {
      return nil
    }
  }

  private static func append(
    _ name: String, _ content: some Collection<UInt8>, to bytes: inout [UInt8]
  ) {
    bytes += name.utf8
    bytes += little(content.count)
    bytes += content
    if !content.count.isMultiple(of: 2) { bytes.append(0) }
  }

  private static func little(_ number: Int) -> [UInt8] {
    (0..<4).map { UInt8(number >> (8 * $0) & 255) }
  }
}

/// The chunks of a WebP, one after another (RFC 9649, 2.3 to 2.7).
struct WebPChunks {
  private var bytes: ByteReader

  /// Starts behind the header of a file.
  ///
  /// - Throws: `ContainerFault.excess` if the header is cut, or states more bytes than there are.
  init(of file: UnsafeRawBufferPointer) throws(ContainerFault) {
    var header = ByteReader(file, at: 4, order: .little)
    guard let length = try? header.number(4) else { throw .excess("RIFF", 4, file.count) }
    guard let riff = try? header.reader(of: length) else {
      throw .excess("RIFF", length, header.left)
    }
    bytes = riff
    bytes.skip(4)
  }

  /// Starts behind the position, size, duration and flags of a frame; `nil` if it has none.
  init?(ofFrame content: UnsafeRawBufferPointer) {
    bytes = ByteReader(content, order: .little)
    guard bytes.skip(16) else { return nil }
  }

  /// Returns the next chunk; `nil` at the end.
  mutating func next() throws(ContainerFault) -> (name: String, content: UnsafeRawBufferPointer)? {
    guard let name = try? bytes.name(), let length = try? bytes.number(4) else { return nil }
    guard let content = try? bytes.take(length) else {
      throw .excess("chunk \(name)", length, bytes.left)
    }
    // The padding byte after an odd length may be missing at the end.
    _ = length % 2 == 1 && bytes.skip(1)
    return (name, content)
  }
}
