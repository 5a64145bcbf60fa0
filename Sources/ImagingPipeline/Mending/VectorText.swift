// VectorText: an SVG as librsvg reads it: in UTF-8, not compressed, without `var()`, with both sides.

import CDeflate
import Model

/// Rewrites SVGs that browsers draw and librsvg does not. What is judged and what is drawn is the result.
enum VectorText {
  /// The most bytes that a compressed SVG inflates to.
  static let maximum = 16 << 20

  /// Returns the document to use in place of a source; `nil` if it stays as it is, or is no SVG.
  static func mended(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    guard let text = inflated(source) else { return inUTF8(source) }
    return text.withUnsafeBytes { bytes in
      inUTF8(bytes) ?? (FormatSigns.format(of: bytes) == .svg ? text : nil)
    }
  }

  /// Returns the content of a gzip file (RFC 1952); `nil` for other files and for too large ones.
  private static func inflated(_ file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard file.starts(with: [0x1f, 0x8b, 8]), file.count >= 18 else { return nil }
    let count = file.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    guard count <= maximum, let decompressor = libdeflate_alloc_decompressor() else { return nil }
    defer { libdeflate_free_decompressor(decompressor) }
    var isWhole = false
    let text = [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, used in
      isWhole =
        libdeflate_gzip_decompress(
          decompressor, file.baseAddress, file.count, buffer.baseAddress, count, nil)
        == LIBDEFLATE_SUCCESS
      used = isWhole ? count : 0
    }
    return isWhole ? text : nil
  }

  private static func inUTF8(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    let isLittle = source.starts(with: [0xff, 0xfe])
    guard isLittle || source.starts(with: [0xfe, 0xff]) else { return rewritten(source) }
    let units = stride(from: 2, to: source.count - 1, by: 2).map { place in
      UInt16(source[place + (isLittle ? 1 : 0)]) << 8
        | UInt16(source[place + (isLittle ? 0 : 1)])
    }
    var text = Array(String(decoding: units, as: UTF16.self).utf8)
    // The declaration names the other encoding. Without it a document is in UTF-8.
    if text.starts(with: "<?xml".utf8), let end = text.firstIndex(of: UInt8(ascii: ">")) {
      text.removeFirst(end + 1)
    }
    return text.withUnsafeBytes { bytes in
      rewritten(bytes) ?? (FormatSigns.format(of: bytes) == .svg ? text : nil)
    }
  }

  private static func rewritten(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    guard FormatSigns.format(of: source) == .svg else { return nil }
    let sized = VectorSides.completed(source)
    let text = sized ?? Array(source)
    return VectorVariables.resolved(text) ?? sized
  }
}
