// BodyDigest: computes a digest of a body incrementally.

import CDeflate
import CGLib

/// An incremental digest: GLib's checksums, libdeflate's CRC-32, or a CRC-32C or CRC-64 of our own.
struct BodyDigest: ~Copyable {
  private enum State {
    case checksum(OpaquePointer)
    case crc32(UInt32)
    case crc32c(UInt32)
    case crc64(UInt64)
  }

  private var state: State

  init(_ algorithm: BodyDigests.Algorithm) {
    func checksum(_ type: GChecksumType) -> State {
      // GLib fails only for unknown types, and every GLib knows these.
      guard let checksum = g_checksum_new(type) else {
        preconditionFailure("GLib lacks a checksum")
      }
      return .checksum(checksum)
    }
    switch algorithm {
    case .md5: state = checksum(G_CHECKSUM_MD5)
    case .sha1: state = checksum(G_CHECKSUM_SHA1)
    case .sha256: state = checksum(G_CHECKSUM_SHA256)
    case .sha512: state = checksum(G_CHECKSUM_SHA512)
    case .crc32: state = .crc32(0)
    case .crc32c: state = .crc32c(.max)
    case .crc64nvme: state = .crc64(.max)
    }
  }

  deinit { if case .checksum(let checksum) = state { g_checksum_free(checksum) } }

  /// Adds the next bytes.
  mutating func update(_ bytes: UnsafeRawBufferPointer) {
    switch state {
    case .checksum(let checksum):
      g_checksum_update(
        checksum, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), gssize(bytes.count))
    case .crc32(let value):
      state = .crc32(libdeflate_crc32(value, bytes.baseAddress, bytes.count))
    case .crc32c(var value):
      Self.table.withUnsafeBufferPointer { table in
        for byte in bytes { value = table[Int((value ^ UInt32(byte)) & 0xff)] ^ (value >> 8) }
      }
      state = .crc32c(value)
    case .crc64(var value):
      Self.wideTable.withUnsafeBufferPointer { table in
        for byte in bytes { value = table[Int((value ^ UInt64(byte)) & 0xff)] ^ (value >> 8) }
      }
      state = .crc64(value)
    }
  }

  /// Returns the digest of all bytes.
  consuming func finish() -> [UInt8] {
    switch state {
    case .checksum(let checksum):
      return [UInt8](unsafeUninitializedCapacity: 64) { digest, count in
        var length = gsize(digest.count)
        g_checksum_get_digest(checksum, digest.baseAddress, &length)
        count = Int(length)
      }
    case .crc32(let value): return Self.bytes(value)
    case .crc32c(let value): return Self.bytes(~value)
    case .crc64(let value): return Self.bytes(~value)
    }
  }

  private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  /// Castagnoli's polynomial, reflected (RFC 3720, appendix B.4).
  private static let table: [UInt32] = (0..<256).map { number in
    (0..<8).reduce(UInt32(number)) { value, _ in
      value & 1 == 0 ? value >> 1 : value >> 1 ^ 0x82f6_3b78
    }
  }

  /// The polynomial of CRC-64/NVME, reflected; the check value of "123456789" is AE8B14860A799888.
  private static let wideTable: [UInt64] = (0..<256).map { number in
    (0..<8).reduce(UInt64(number)) { value, _ in
      value & 1 == 0 ? value >> 1 : value >> 1 ^ 0x9a6c_9329_ac4b_c9b5
    }
  }
}
