// PNGChunks: walks over a PNG's chunks: checks them, and takes out texts and metadata.

import CDeflate
import Core

/// A chunk (PNG 1.2, section 3.2).
struct PNGChunk {
  /// The four letters of the type.
  let type: [UInt8]
  let content: UnsafeRawBufferPointer
  /// The type and content, which the checksum covers.
  let checked: UnsafeRawBufferPointer
  let checksum: UInt32

  func isOf(_ name: StaticString) -> Bool {
    name.withUTF8Buffer { type.elementsEqual($0) }
  }

  /// Whether the checksum is right.
  var isIntact: Bool { libdeflate_crc32(0, checked.baseAddress, checked.count) == checksum }

  /// Whether the chunk is critical: its first letter is upper-case (section 3.3).
  var isCritical: Bool { type[0] & 0x20 == 0 }
}

/// An iterator over chunks.
struct PNGChunks {
  /// The reason why no further chunk can be read.
  enum End: Error {
    /// The chunk is longer than the rest of the file.
    case truncated
    /// The chunk type contains something other than letters.
    case senseless
  }

  private let bytes: UnsafeRawBufferPointer
  /// The offset of the next chunk.
  private(set) var position = 8

  /// Creates an iterator.
  ///
  /// - Parameter bytes: A file that starts with the PNG signature.
  init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

  mutating func next() throws(End) -> PNGChunk {
    guard position + 12 <= bytes.count else { throw .truncated }
    let type = Array(bytes[position + 4..<position + 8])
    guard type.allSatisfy({ (0x41...0x5a).contains($0 & 0xdf) }) else { throw .senseless }
    let reader = ByteReader(bytes)
    guard let length = try? reader.number(at: position, width: 4),
      let checksum = try? reader.number(at: position + 8 + length, width: 4)
    else { throw .truncated }
    defer { position += 12 + length }
    return PNGChunk(
      type: type,
      content: UnsafeRawBufferPointer(rebasing: bytes[position + 8..<position + 8 + length]),
      checked: UnsafeRawBufferPointer(rebasing: bytes[position + 4..<position + 8 + length]),
      checksum: UInt32(checksum))
  }
}

enum PNGCheck {
  /// Checks the checksum of each chunk that affects pixels, and that the last chunk is IEND.
  ///
  /// libpng checks that the compressed pixel stream is complete. A wrong checksum of any other
  /// chunk is harmless.
  static func soundness(of bytes: UnsafeRawBufferPointer) -> Soundness {
    var chunks = PNGChunks(bytes)
    var hasPixels = false
    while true {
      let chunk: PNGChunk
      do throws(PNGChunks.End) {
        chunk = try chunks.next()
      } catch .truncated {
        return .damaged(.truncated, "a PNG that ends early")
      } catch {
        return .damaged(.error, "a PNG's chunk without a name")
      }
      if chunk.isCritical || chunk.isOf("tRNS"), !chunk.isIntact {
        return .damaged(.error, "the checksum of a PNG's chunk")
      }
      if chunk.isOf("IDAT") { hasPixels = true }
      if chunk.isOf("IEND") {
        return hasPixels ? .whole : .damaged(.error, "a PNG without pixels")
      }
    }
  }
}

/// Limits what the text of a PNG inflates to. libpng inflates up to 1,000 texts of 8 MB each and
/// keeps them all, for a description, too. So 500 kB could take gigabytes.
enum PNGText {
  /// The maximum bytes that all compressed texts of a PNG inflate to. XMP, the largest in use,
  /// seldom exceeds 1 MB.
  static let maximum = 8 << 20
  /// The most that libpng inflates one text to (`PNG_USER_CHUNK_MALLOC_MAX`).
  private static let maximumOfOne = 8_000_000
  /// The best ratio of deflate.
  private static let bestRatio = 1_032

  /// Returns whether the compressed texts inflate to more than `maximum` bytes. `false` for
  /// anything but a PNG.
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

  /// Returns the PNG without its compressed and its international texts if they inflate to too
  /// much; otherwise `nil`.
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

  /// Returns the zlib stream of a compressed text (PNG third edition, 11.3.3.3 and 11.3.3.4); `nil`
  /// for other chunks.
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

/// A PNG without its rows, which can be put back in another form.
struct PNGParts {
  /// The layout of the rows.
  let layout: PNGLayout
  /// The bytes before the `IDAT` chunks and after them.
  private let head: [UInt8]
  private let tail: [UInt8]

  /// Finds the chunks. Returns `nil` if one is damaged or unknown to matter for the rows.
  init?(_ file: UnsafeRawBufferPointer) {
    guard file.count > 8 else { return nil }
    var chunks = PNGChunks(file)
    var layout: PNGLayout?
    var place: Range<Int>?
    while true {
      let start = chunks.position
      guard let chunk = try? chunks.next(), chunk.isIntact,
        // An animation has frames in chunks of their own.
        !chunk.isOf("acTL")
      else { return nil }
      if chunk.isOf("IHDR") {
        guard start == 8 else { return nil }
        layout = PNGLayout(header: chunk.content)
      } else if chunk.isOf("IDAT") {
        // These chunks follow each other (5.6).
        guard place == nil || place?.upperBound == start else { return nil }
        place = (place?.lowerBound ?? start)..<chunks.position
      } else if chunk.isOf("IEND") {
        break
      }
    }
    guard let layout, let place, chunks.position == file.count else { return nil }
    self.layout = layout
    head = Array(file[..<place.lowerBound])
    tail = Array(file[place.upperBound...])
  }

  /// Returns the rows of the file as a zlib stream: the contents of all `IDAT` chunks.
  ///
  /// - Parameter file: The file that the parts are of.
  func compressed(in file: UnsafeRawBufferPointer) -> [UInt8] {
    var chunks = PNGChunks(file)
    var compressed: [UInt8] = []
    while let chunk = try? chunks.next(), !chunk.isOf("IEND") {
      if chunk.isOf("IDAT") { compressed += chunk.content }
    }
    return compressed
  }

  /// Returns the file with other compressed rows, in one chunk.
  ///
  /// - Parameters:
  ///   - compressed: The rows as a zlib stream.
  ///   - form: If they have another form: the bits of a sample, the colour type (11.2.1), and the
  ///     chunks in front of the rows, in order.
  func file(
    with compressed: [UInt8],
    form: (depth: UInt8, colourType: UInt8, chunks: [(String, [UInt8])])? = nil
  ) -> [UInt8] {
    var head = head
    if let form {
      // The signature is 8 bytes, and `IHDR` with 13 of content comes first (5.2, 5.6).
      var header = Array(head[16..<29])
      (header[8], header[9]) = (form.depth, form.colourType)
      head =
        Array(head[..<8]) + Self.chunk("IHDR", header) + head[33...]
        + form.chunks.flatMap { Self.chunk($0, $1) }
    }
    return head + Self.chunk("IDAT", compressed) + tail
  }

  private static func chunk(_ type: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(type.utf8) + content
    return [UInt8].number(content.count, 4) + checked
      + [UInt8].number(Int(libdeflate_crc32(0, checked, checked.count)), 4)
  }
}

enum Zlib {
  /// Decompresses a zlib stream, or a gzip file (RFC 1952), to exactly `count` bytes. Returns
  /// `false` for damage, any other number of bytes, or too little memory.
  static func inflate(
    _ bytes: UnsafeRawPointer?, _ length: Int, to place: UnsafeMutableRawPointer?, count: Int,
    isGzip: Bool = false
  ) -> Bool {
    guard let decompressor = libdeflate_alloc_decompressor() else { return false }
    defer { libdeflate_free_decompressor(decompressor) }
    let decompress = isGzip ? libdeflate_gzip_decompress : libdeflate_zlib_decompress
    // Without a place for the count, any other count of bytes is an error.
    return decompress(decompressor, bytes, length, place, count, nil) == LIBDEFLATE_SUCCESS
  }

  /// Returns the `count` bytes as `inflate` does; `nil` if it fails.
  static func inflated(
    _ bytes: UnsafeRawPointer?, _ length: Int, count: Int, isGzip: Bool = false
  ) -> [UInt8]? {
    var isWhole = false
    let result = [UInt8](unsafeUninitializedCapacity: max(count, 1)) { buffer, used in
      isWhole = inflate(bytes, length, to: buffer.baseAddress, count: count, isGzip: isGzip)
      used = isWhole ? count : 0
    }
    return isWhole ? result : nil
  }

  /// Returns a zlib stream of the bytes; `nil` if memory is short.
  ///
  /// - Parameter level: libdeflate's level, 0 to 12.
  static func deflated(_ bytes: [UInt8], level: CInt) -> [UInt8]? {
    guard let compressor = libdeflate_alloc_compressor(level) else { return nil }
    defer { libdeflate_free_compressor(compressor) }
    let room = libdeflate_zlib_compress_bound(compressor, bytes.count)
    let result = [UInt8](unsafeUninitializedCapacity: room) { buffer, used in
      used = libdeflate_zlib_compress(
        compressor, bytes, bytes.count, buffer.baseAddress, room)
    }
    return result.isEmpty ? nil : result
  }
}
