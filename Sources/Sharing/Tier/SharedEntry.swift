// SharedEntry: the bytes of an entry in Redis, checked like network input.

import CGLib
import Model

/// The bytes of an entry: a version, the mark, a SHA-256 in hexadecimal, and the content that it is of.
enum SharedEntry {
  private static let version: UInt8 = 1

  static func bytes(_ mark: SharedMark, _ content: [UInt8]) -> [UInt8] {
    var bytes = [version, UInt8(clamping: mark.epoch.utf8.count)]
    bytes += mark.epoch.utf8.prefix(255)
    for number in [mark.milliseconds, mark.number] {
      withUnsafeBytes(of: number.littleEndian) { bytes += $0 }
    }
    return bytes + digest(content[...]).utf8 + content
  }

  /// Reads untrusted bytes.
  static func read(_ bytes: [UInt8]) -> (SharedMark, ArraySlice<UInt8>)? {
    guard bytes.count > 2, bytes[0] == version else { return nil }
    let start = 2 + Int(bytes[1])
    guard bytes.count >= start + 16 + 64 else { return nil }
    func number(at offset: Int) -> UInt64 {
      bytes[offset..<offset + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }
    }
    let content = bytes[(start + 80)...]
    guard let epoch = String(validating: bytes[2..<start], as: UTF8.self),
      bytes[(start + 16)..<(start + 80)].elementsEqual(digest(content).utf8)
    else { return nil }
    let mark = SharedMark(
      epoch: epoch, milliseconds: number(at: start), number: number(at: start + 8))
    return (mark, content)
  }

  /// The SHA-256 of bytes in hexadecimal.
  static func digest(_ bytes: ArraySlice<UInt8>) -> String {
    bytes.withUnsafeBufferPointer { buffer in
      guard
        let text = g_compute_checksum_for_data(
          G_CHECKSUM_SHA256, buffer.baseAddress, gsize(buffer.count))
      else {
        return ""
      }
      defer { g_free(text) }
      return String(cString: text)
    }
  }
}
