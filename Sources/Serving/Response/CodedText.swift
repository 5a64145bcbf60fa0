// CodedText: a text with its gzip form.

import CDeflate

/// A text, and the same compressed.
struct CodedText: Sendable {
  let plain: [UInt8]
  /// `nil`: of a short text that one packet takes, or of one that would not shrink.
  let gzip: [UInt8]?

  /// What one packet carries, beside the head of the response.
  static let shortest = 1_000

  init(_ plain: [UInt8]) {
    self.plain = plain
    gzip = plain.count < Self.shortest ? nil : Self.compressed(plain)
  }

  private static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
    // zlib's usual level.
    guard let compressor = libdeflate_alloc_compressor(6) else { return nil }
    defer { libdeflate_free_compressor(compressor) }
    let compressed = [UInt8](unsafeUninitializedCapacity: bytes.count) { room, count in
      // 0 if there is not enough room.
      count = libdeflate_gzip_compress(
        compressor, bytes, bytes.count, room.baseAddress, room.count)
    }
    return compressed.isEmpty ? nil : compressed
  }
}
