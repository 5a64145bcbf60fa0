// Stripping: removes the metadata of a file without decoding it; all other bytes stay the same.

import CDeflate
import Model

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
      // Decoders skip a chunk with a wrong checksum or refuse the file. A file whose pixels need the chunk was refused
      // before.
      let isDamaged =
        libdeflate_crc32(0, chunk.checked.baseAddress, chunk.checked.count) != chunk.checksum
      let isDropped =
        !kept.contains(name) || (hasProfile && ["gAMA", "cHRM"].contains(name)) || isDamaged
      // A name's first letter tells whether it may be left out (5.4): capitals may not.
      guard !isDropped || !chunk.isCritical else { return nil }
      // A result has at most 8 bits per sample.
      if name == "IHDR", chunk.content.count < 9 || chunk.content[8] > 8 { return nil }
      if !isDropped { result += file[start..<chunks.position] }
      if name == "IEND" { return result }
    }
  }
}
