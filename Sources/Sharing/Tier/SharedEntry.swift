// SharedEntry: the bytes of an entry in the shared tier.

import CGLib
import Model

/// The bytes of an entry: a version, the mark, a SHA-256 in hexadecimal, and the content that it is of.
enum SharedEntry {
  /// The versions.
  enum Kind: UInt8 {
    /// The content is a variant.
    case whole = 1
    /// The variant is in the bucket. No content.
    case inBucket = 2
    /// The content is the expiry, in seconds since 1970 as 8 bytes, little-endian, and a variant.
    case dated = 3
  }

  /// The name of a variant's entry, after the fleet's prefix.
  static func name(of key: CacheKey) -> String { "v:" + digest(Array(key.text.utf8)[...]) }

  /// Returns the bytes of an entry in the bucket, which has no TTL that readers could rely on.
  static func bytes(_ mark: SharedMark, _ content: [UInt8], expires: UnixTime) -> [UInt8] {
    var dated: [UInt8] = []
    dated.reserveCapacity(8 + content.count)
    withUnsafeBytes(of: Int64(expires.seconds).littleEndian) { dated += $0 }
    dated += content
    return bytes(mark, dated, as: .dated)
  }

  /// Reads untrusted bytes of the bucket; `nil` for an entry that is damaged, expired or of another kind. The content is
  /// valid as long as the bytes.
  static func parse(
    dated bytes: UnsafeRawBufferPointer, at now: UnixTime
  ) -> (mark: SharedMark, content: UnsafeRawBufferPointer)? {
    guard let entry = parse(bytes), entry.kind == .dated, entry.content.count > 8,
      now.seconds < entry.content.loadUnaligned(as: Int64.self).littleEndian
    else { return nil }
    return (entry.mark, UnsafeRawBufferPointer(rebasing: entry.content[8...]))
  }

  /// Returns the bytes of an entry.
  static func bytes(_ mark: SharedMark, _ content: [UInt8], as kind: Kind = .whole) -> [UInt8] {
    var bytes = [kind.rawValue, UInt8(clamping: mark.epoch.utf8.count)]
    bytes.reserveCapacity(2 + mark.epoch.utf8.count + 80 + content.count)
    bytes += mark.epoch.utf8.prefix(255)
    for number in [mark.milliseconds, mark.number] {
      withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
    bytes += content.withUnsafeBytes { digest($0) }.utf8
    bytes += content
    return bytes
  }

  /// Reads untrusted bytes. The content is valid as long as the bytes.
  static func parse(
    _ bytes: UnsafeRawBufferPointer
  ) -> (kind: Kind, mark: SharedMark, content: UnsafeRawBufferPointer)? {
    guard bytes.count > 2, let kind = Kind(rawValue: bytes[0]) else { return nil }
    let start = 2 + Int(bytes[1])
    guard bytes.count >= start + 16 + 64 else { return nil }
    func number(at offset: Int) -> UInt64 {
      bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self).littleEndian
    }
    let content = UnsafeRawBufferPointer(rebasing: bytes[(start + 80)...])
    guard let epoch = String(validating: bytes[2..<start], as: UTF8.self),
      bytes[(start + 16)..<(start + 80)].elementsEqual(digest(content).utf8)
    else { return nil }
    let mark = SharedMark(
      epoch: epoch, milliseconds: number(at: start), number: number(at: start + 8))
    return (kind, mark, content)
  }

  /// Reads an entry of the kind `whole`.
  static func read(_ bytes: [UInt8]) -> (SharedMark, ArraySlice<UInt8>)? {
    let found = bytes.withUnsafeBytes { buffer in
      parse(buffer).flatMap { $0.kind == .whole ? ($0.mark, $0.content.count) : nil }
    }
    return found.map { ($0.0, bytes.suffix($0.1)) }
  }

  /// The SHA-256 of bytes in hexadecimal.
  static func digest(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.withUnsafeBytes { digest($0) }
  }

  /// The SHA-256 of bytes in hexadecimal.
  static func digest(_ bytes: UnsafeRawBufferPointer) -> String {
    guard
      let text = g_compute_checksum_for_data(
        G_CHECKSUM_SHA256, bytes.bindMemory(to: UInt8.self).baseAddress, gsize(bytes.count))
    else {
      return ""
    }
    defer { g_free(text) }
    return String(cString: text)
  }
}
