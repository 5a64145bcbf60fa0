// EntryDigest: the name of an entry on disk, made from its key.

import CGLib
import Model

/// What an entry holds.
enum EntryKind: UInt8, CaseIterable, Sendable {
  case variant = 0
  case source = 1

  init(of key: CacheKey) { self = key.isSource ? .source : .variant }

  /// The folder below the tier's own.
  var folderName: String { self == .variant ? "v" : "s" }
}

/// The first 128 bits of the SHA-256 of a key's text. Strangers choose keys, so the digest must be one in which they
/// cannot make two collide; the whole text is in the file all the same.
struct EntryDigest: Hashable, Sendable {
  let high: UInt64
  let low: UInt64

  init(of key: CacheKey) {
    var text = key.text
    (high, low) = text.withUTF8 { bytes in
      // GLib makes a checksum for every type it knows, and SHA-256 is one; without, all keys share a name, and the
      // key text in the files tells them apart.
      guard let checksum = g_checksum_new(G_CHECKSUM_SHA256) else { return (0, 0) }
      defer { g_checksum_free(checksum) }
      g_checksum_update(checksum, bytes.baseAddress, gssize(bytes.count))
      return withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
        var length = gsize(digest.count)
        g_checksum_get_digest(checksum, digest.baseAddress, &length)
        return (
          UInt64(bigEndian: digest.load(as: UInt64.self)),
          UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self))
        )
      }
    }
  }

  /// A file name read back; `nil` for anything but 32 lower-case hexadecimal digits.
  init?(hexadecimal name: some StringProtocol) {
    guard name.utf8.count == 32 else { return nil }
    var (high, low) = (UInt64(0), UInt64(0))
    for (position, byte) in name.utf8.enumerated() {
      let digit: UInt8
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
      default: return nil
      }
      if position < 16 { high = high << 4 | UInt64(digit) } else { low = low << 4 | UInt64(digit) }
    }
    (self.high, self.low) = (high, low)
  }

  /// The file name.
  var hexadecimal: String {
    String(unsafeUninitializedCapacity: 32) { buffer in
      for position in 0..<32 {
        let word = position < 16 ? high : low
        let digit = UInt8(word >> UInt64(60 - position % 16 * 4) & 0xf)
        buffer[position] = digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
      }
      return 32
    }
  }

  /// 0–4,095: the folder it is in, named by its first three digits.
  var folder: Int { Int(high >> 52) }

  // Uniformly distributed already: half of it is hash enough.
  func hash(into hasher: inout Hasher) { hasher.combine(high) }
}
