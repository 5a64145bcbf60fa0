// EntryHeader: the first bytes of an entry's file, with the checksums that detect damage.

import CDeflate
import Model

/// The header: forty bytes, little-endian. The fields and their lengths in bytes, in order:
///
/// - magic (8), format version (2), kind (1), zero (1)
/// - length of the metadata (4), length of the body (8)
/// - CRC-32 of everything between header and body (4), CRC-32 of the body (4)
/// - offset of the body (4), CRC-32 of the 36 bytes before (4)
///
/// The metadata follows, then zeros up to the body, which starts at a multiple of 64.
struct EntryHeader: Equatable {
  static let byteCount = 40
  static let version: UInt16 = 1
  private static let magic: UInt64 = 0x0a45_4843_5443_4950  // "PICTCHE\n"
  private static let bodyAlignment = 64
  /// Maximum length of the metadata in bytes: enough for the longest URL and all response headers.
  static let maximumMetadataLength = 1 << 20

  var kind: EntryKind
  var metadataLength: Int
  var metadataChecksum: UInt32
  var bodyLength: Int
  var bodyChecksum: UInt32
  /// The offset of the body in the file.
  var bodyOffset: Int

  /// The length of the whole file.
  var fileLength: Int { bodyOffset + bodyLength }

  /// Returns the offset of the body after metadata of this length.
  static func bodyOffset(metadataLength: Int) -> Int {
    (byteCount + metadataLength + bodyAlignment - 1) / bodyAlignment * bodyAlignment
  }

  /// Returns everything before the body: header, metadata and padding.
  static func prefix(
    kind: EntryKind, metadata: [UInt8], bodyLength: Int, bodyChecksum: UInt32
  ) -> [UInt8] {
    let end = byteCount + metadata.count
    let bodyOffset = bodyOffset(metadataLength: metadata.count)
    var bytes = [UInt8](repeating: 0, count: bodyOffset)
    bytes.replaceSubrange(byteCount..<end, with: metadata)
    bytes.withUnsafeMutableBytes { bytes in
      func put<Number: FixedWidthInteger>(_ number: Number, at offset: Int) {
        bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
      }
      put(magic, at: 0)
      put(version, at: 8)
      put(kind.rawValue, at: 10)
      put(UInt32(metadata.count), at: 12)
      put(UInt64(bodyLength), at: 16)
      put(checksum(UnsafeRawBufferPointer(rebasing: bytes[byteCount...])), at: 24)
      put(bodyChecksum, at: 28)
      put(UInt32(bodyOffset), at: 32)
      put(checksum(UnsafeRawBufferPointer(rebasing: bytes[..<36])), at: 36)
    }
    return bytes
  }

  /// Decodes a header. Returns `nil` for another version and for damage.
  init?(decoding bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount else { return nil }
    func get<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number {
      Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
    guard get(UInt64.self, at: 0) == Self.magic, get(UInt16.self, at: 8) == Self.version,
      get(UInt32.self, at: 36)
        == Self.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<36])),
      let kind = EntryKind(rawValue: get(UInt8.self, at: 10)),
      let bodyLength = Int(exactly: get(UInt64.self, at: 16)), bodyLength <= Int.max / 2
    else { return nil }
    self.kind = kind
    self.bodyLength = bodyLength
    metadataLength = Int(get(UInt32.self, at: 12))
    metadataChecksum = get(UInt32.self, at: 24)
    bodyChecksum = get(UInt32.self, at: 28)
    bodyOffset = Int(get(UInt32.self, at: 32))
    guard metadataLength <= Self.maximumMetadataLength,
      Self.byteCount + metadataLength <= bodyOffset,
      bodyOffset - Self.byteCount - metadataLength < Self.bodyAlignment
    else { return nil }
  }

  /// Returns the metadata, or `nil` if it is damaged. `beginning` holds the file at least up to the
  /// body.
  ///
  /// - Parameter isKnown: whether the checksum was verified before.
  func metadata(in beginning: UnsafeRawBufferPointer, isKnown: Bool = false) -> EntryMetadata? {
    let rest = UnsafeRawBufferPointer(rebasing: beginning[Self.byteCount..<bodyOffset])
    guard isKnown || Self.checksum(rest) == metadataChecksum else { return nil }
    let fields = UnsafeRawBufferPointer(rebasing: rest[..<metadataLength])
    return EntryMetadata(kind: kind, decoding: fields)
  }

  /// Returns the CRC-32 of `bytes`, continued from `earlier`.
  static func checksum(_ bytes: UnsafeRawBufferPointer, after earlier: UInt32 = 0) -> UInt32 {
    // libdeflate restarts the checksum for a null pointer.
    guard let start = bytes.baseAddress else { return earlier }
    return libdeflate_crc32(earlier, start, bytes.count)
  }
}
