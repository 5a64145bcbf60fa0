// EntryDigest: the name of an entry on disk, made from its key so that all entries of a URL stand together.

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

/// Two words that name an entry, made of digests (SHA-256) of the parts of its key, so that families are found by their
/// names alone: all entries of a URL share `high`, 64 bits of the URL's, and with it a folder and a part of the index.
/// Those of one of its sources (see `CacheKey.varied`) share the upper half of `low` too, 32 bits of the source's; the
/// lower half is 31 bits of the whole key's and one that tells a source from a variant.
///
/// Strangers choose keys, but hardly whom a collision harms. A URL with the `high` of a given one takes 2⁶⁴ attempts, and
/// is purged with it. A variant with the name of a given one of the same source takes 2³¹, and then each is a miss once
/// the other was asked for: the whole text is in each file and is compared when it is read.
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
      let space = key.isSource ? nil : bytes.firstIndex(of: UInt8(ascii: " "))
      let sourceEnd = space ?? bytes.endIndex
      let urlEnd = bytes[..<sourceEnd].firstIndex(of: UInt8(ascii: "#")) ?? sourceEnd
      // What is hashed is hashed once: a part's digest is taken on the way to the next. Each is 0.3 µs more than one
      // digest alone (0.9 instead of 0.6 for a variant, and a URL of 100 bytes), and few keys have a varied source.
      var words = Self.words(after: bytes[..<urlEnd], checksum, isLast: urlEnd == bytes.endIndex)
      let high = words.first
      if urlEnd < sourceEnd {
        words = Self.words(
          after: bytes[urlEnd..<sourceEnd], checksum, isLast: sourceEnd == bytes.endIndex)
      }
      // Not the first word: of most sources that is `high` already.
      let source = words.second & Self.sourceMask
      guard sourceEnd < bytes.endIndex else {
        return (high, source | words.second & ~Self.sourceMask | Self.kindBit)
      }
      let whole = Self.words(after: bytes[sourceEnd...], checksum, isLast: true)
      return (high, source | whole.second & ~Self.sourceMask & ~Self.kindBit)
    }
  }

  /// The bits of `low` that all entries of a source share.
  static let sourceMask: UInt64 = 0xffff_ffff_0000_0000
  /// The bit of `low` that is set in a source's name, and in no variant's: the index has one table for both.
  private static let kindBit: UInt64 = 1

  /// The first two words of the digest after these bytes; the last ones end the checksum.
  private static func words(
    after bytes: Slice<UnsafeBufferPointer<UInt8>>, _ checksum: OpaquePointer, isLast: Bool
  ) -> (first: UInt64, second: UInt64) {
    let bytes = UnsafeBufferPointer(rebasing: bytes)
    g_checksum_update(checksum, bytes.baseAddress, gssize(bytes.count))
    guard !isLast else { return words(of: checksum) }
    guard let copy = g_checksum_copy(checksum) else { return (0, 0) }
    defer { g_checksum_free(copy) }
    return words(of: copy)
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

  // Uniformly distributed already, so half of it is hash enough: the half that differs within a folder.
  func hash(into hasher: inout Hasher) { hasher.combine(low) }
}
