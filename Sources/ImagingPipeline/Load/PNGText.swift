// PNGText: the compressed text chunks of a PNG, which may inflate to a thousand times their bytes.

import CDeflate
import Model

/// Limits what the text of a PNG inflates to. libpng inflates up to 1,000 texts of 8 MB each and keeps them all, for a
/// description, too. So 500 kB could take gigabytes.
enum PNGText {
  /// The maximum bytes that all compressed texts of a PNG inflate to. XMP, the largest in use, seldom exceeds 1 MB.
  static let maximum = 8 << 20
  /// The most that libpng inflates one text to (`PNG_USER_CHUNK_MALLOC_MAX`).
  private static let maximumOfOne = 8_000_000
  /// The best ratio of deflate.
  private static let bestRatio = 1_032

  /// Returns whether the compressed texts inflate to more than `maximum` bytes. `false` for anything but a PNG.
  static func isExcessive(_ file: UnsafeRawBufferPointer) -> Bool {
    guard FormatSigns.format(of: file) == .png else { return false }
    var chunks = PNGChunks(file)
    var texts: [UnsafeRawBufferPointer] = []
    while let chunk = try? chunks.next() {
      if let text = compressedText(of: chunk) { texts.append(text) }
    }
    // Nearly always the compressed bytes alone tell.
    guard texts.reduce(0, { $0 + bound(of: $1) }) > maximum else { return false }
    guard let decompressor = libdeflate_alloc_decompressor() else { return true }
    defer { libdeflate_free_decompressor(decompressor) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: maximum, alignment: 16)
    defer { buffer.deallocate() }
    var left = maximum
    for text in texts {
      guard let count = inflatedCount(of: text, into: buffer, with: decompressor) else {
        return true
      }
      left -= count
      guard left >= 0 else { return true }
    }
    return false
  }

  /// Returns the PNG without its compressed and its international texts if they inflate to too much; otherwise `nil`.
  static func removed(from file: UnsafeRawBufferPointer) -> [UInt8]? {
    guard isExcessive(file) else { return nil }
    var chunks = PNGChunks(file)
    var result = Array(file.prefix(chunks.position))
    var start = chunks.position
    while let chunk = try? chunks.next() {
      if !isText(chunk) { result += file[start..<chunks.position] }
      start = chunks.position
    }
    // What is no chunk is left to the decoder.
    return result + file[start...]
  }

  private static func isText(_ chunk: PNGChunk) -> Bool {
    chunk.isOf("zTXt") || chunk.isOf("iTXt")
  }

  /// Returns the zlib stream of a compressed text (PNG third edition, 11.3.3.3 and 11.3.3.4); `nil` for other chunks.
  private static func compressedText(of chunk: PNGChunk) -> UnsafeRawBufferPointer? {
    guard isText(chunk) else { return nil }
    var rest = chunk.content[...]
    /// Skips a text that ends with a zero.
    func skipText() -> Bool {
      guard let end = rest.firstIndex(of: 0) else { return false }
      rest = rest[(end + 1)...]
      return true
    }
    guard skipText() else { return nil }
    if chunk.isOf("iTXt") {
      // The flag, the method, the language and the translated keyword.
      guard rest.first == 1, rest.count >= 2 else { return nil }
      rest = rest.dropFirst(2)
      guard skipText(), skipText() else { return nil }
    } else {
      rest = rest.dropFirst()
    }
    return UnsafeRawBufferPointer(rebasing: rest)
  }

  private static func bound(of text: UnsafeRawBufferPointer) -> Int {
    min(text.count * bestRatio, maximumOfOne)
  }

  /// Returns how many bytes libpng inflates; `nil` if that is more than the buffer holds.
  private static func inflatedCount(
    of text: UnsafeRawBufferPointer, into buffer: UnsafeMutableRawBufferPointer,
    with decompressor: OpaquePointer
  ) -> Int? {
    var count = 0
    let result = libdeflate_zlib_decompress(
      decompressor, text.baseAddress, text.count, buffer.baseAddress, buffer.count, &count)
    switch result {
    case LIBDEFLATE_SUCCESS: return count
    case LIBDEFLATE_INSUFFICIENT_SPACE: return nil
    // libpng inflates up to the fault.
    default: return bound(of: text)
    }
  }
}
