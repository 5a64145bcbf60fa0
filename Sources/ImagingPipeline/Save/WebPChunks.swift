// WebPChunks: walks over the chunks of a WebP, and removes those that hold metadata.

import Model
import Platform

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

/// Strips a WebP of all but its pixels. libvips writes Exif without information into every WebP, even with `strip`.
enum WebPStripping {
  /// The flags kept in the extended header: alpha and animation.
  private static let flagsKept: UInt8 = 0x12
  private static let pixels = ["VP8 ", "VP8L", "ALPH"]

  /// Returns the file without metadata; `nil` if it is damaged.
  static func stripped(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
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
            if pixels.contains(name) { append(name, content, to: &parts) }
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
