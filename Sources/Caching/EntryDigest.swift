// EntryDigest: the name of an entry on disk, made from its key so that all variants of a source stand together.

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

/// Two words of SHA-256. `high` is the first 64 bits of the digest of the source's key and so the same for a source and
/// all of its variants, which are then in one folder and one part of the index and can be found without being read.
/// `low` tells them apart: for a variant the first 64 bits of the digest of its whole key, for a source the next 64
/// bits of its own.
///
/// Strangers choose keys, but whom a collision harms they cannot choose: a key with the word of a given one takes 2⁶⁴
/// attempts. Two of their own with one word take 2³², and win nothing: the whole text is in each file and is compared
/// when it is read, so that names which collide are a miss, and a `high` which does is one removal too many.
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
      guard !key.isSource, let space = bytes.firstIndex(of: UInt8(ascii: " ")) else {
        Self.update(checksum, bytes[...])
        return Self.words(of: checksum)
      }
      // The source's part is hashed once: its digest is taken on the way to that of the whole, which then goes on. That is
      // 0.3 µs more than one digest (0.9 instead of 0.6, for a URL of 100 bytes).
      Self.update(checksum, bytes[..<space])
      guard let ofSource = g_checksum_copy(checksum) else { return (0, 0) }
      defer { g_checksum_free(ofSource) }
      Self.update(checksum, bytes[space...])
      return (Self.words(of: ofSource).first, Self.words(of: checksum).first)
    }
  }

  private static func update(_ checksum: OpaquePointer, _ bytes: Slice<UnsafeBufferPointer<UInt8>>)
  {
    let bytes = UnsafeBufferPointer(rebasing: bytes)
    g_checksum_update(checksum, bytes.baseAddress, gssize(bytes.count))
  }

  /// The first two words of a digest; ends the checksum.
  private static func words(of checksum: OpaquePointer) -> (first: UInt64, second: UInt64) {
    withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { digest in
      var length = gsize(digest.count)
      g_checksum_get_digest(checksum, digest.baseAddress, &length)
      return (
        UInt64(bigEndian: digest.load(as: UInt64.self)),
        UInt64(bigEndian: digest.load(fromByteOffset: 8, as: UInt64.self))
      )
    }
  }

  /// The digest of these words.
  init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

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

  // Uniformly distributed already, so half of it is hash enough: the half that differs among a source's variants.
  func hash(into hasher: inout Hasher) { hasher.combine(low) }
}
