// PNGPixels: decodes a PNG in one call, into memory.

import CDeflate
import CVips
import Glibc
import Model

/// The pixels of a PNG.
///
/// libdeflate takes less than half of zlib's time, but needs the whole stream and room for all of
/// its rows. The pixels are those of libvips (`PNGPixelsTests`).
enum PNGPixels {
  /// The maximum bytes of the pixels, and of the source. libvips decodes larger PNGs in strips.
  static let maximumBytes = 24 << 20

  /// Returns the image; `nil` if libvips has to decode it: a kind of PNG that is not known here, a large one, damage, or
  /// too little memory.
  ///
  /// - Parameters:
  ///   - source: A PNG in which the checksums of critical chunks and of `tRNS` are right.
  ///   - header: The same image as libvips describes it.
  static func image(_ source: UnsafeRawBufferPointer, _ header: SourceHeader) -> Image? {
    guard let memory = memory(of: source, header),
      MemoryLeft.jobHasPlenty(for: memory), let stream = PNGStream(source),
      stream.layout.size == header.size, stream.bands * stream.depth == header.pixelBytes,
      (stream.bands % 2 == 0) == header.hasAlpha,
      let rows = PNGPixelRows(stream), rows.unfilter(),
      let image = rows.image(profile: header.profile)
    else {
      VipsLibrary.tidyUp()
      return nil
    }
    image.setResolution(header.resolution)
    return image
  }

  /// Returns the bytes that this takes: the pixels, the indices of a palette, and the compressed stream in one piece.
  /// `nil` if pixels or source have more than `maximumBytes`.
  static func memory(of source: UnsafeRawBufferPointer, _ header: SourceHeader) -> Int? {
    let pixels = header.size.pixels * header.pixelBytes
    guard pixels <= maximumBytes, source.count <= maximumBytes, source.count > 25 else {
      return nil
    }
    // Depth and colour type (third edition, 11.2.1): a palette, or fewer than 8 bits.
    let hasIndices = source[25] == 3 || source[24] < 8
    return pixels + (hasIndices ? header.size.pixels : 0) + header.size.height + source.count
  }
}

/// The rows of a PNG, with their filters and then without. The owner of their memory, unless it becomes an image's.
private final class PNGPixelRows {
  private let stream: PNGStream
  /// The rows, each after the byte of its filter, and then without these bytes and without gaps.
  private let bytes: UnsafeMutablePointer<UInt8>
  private var isOwned = true

  private var rowBytes: Int { stream.layout.passes[0].rowBytes }

  /// Decompresses the rows. Returns `nil` for damage, another number of bytes than the header tells, or too little memory.
  init?(_ stream: PNGStream) {
    guard let decompressor = libdeflate_alloc_decompressor() else { return nil }
    defer { libdeflate_free_decompressor(decompressor) }
    let count = stream.layout.byteCount
    guard let memory = malloc(count) else { return nil }
    self.stream = stream
    bytes = memory.bindMemory(to: UInt8.self, capacity: count)
    let isWhole = Self.withOnePiece(stream.compressed) { compressed in
      // Without a place for the count, any other count of bytes is an error.
      libdeflate_zlib_decompress(
        decompressor, compressed.baseAddress, compressed.count, memory, count, nil)
        == LIBDEFLATE_SUCCESS
    }
    guard isWhole else { return nil }
  }

  /// Passes the parts of the stream as one; returns `false` if memory is short.
  private static func withOnePiece(
    _ parts: [UnsafeRawBufferPointer], _ body: (UnsafeRawBufferPointer) -> Bool
  ) -> Bool {
    if parts.count == 1 { return body(parts[0]) }
    let count = parts.reduce(0) { $0 + $1.count }
    guard let memory = malloc(max(count, 1)) else { return false }
    defer { free(memory) }
    var place = memory
    for part in parts {
      if let start = part.baseAddress { memcpy(place, start, part.count) }
      place += part.count
    }
    return body(UnsafeRawBufferPointer(start: memory, count: count))
  }

  deinit { if isOwned { free(bytes) } }

  /// Undoes the filters and moves the rows together. Returns `false` for an unknown filter.
  func unfilter() -> Bool {
    for y in 0..<stream.layout.size.height {
      let row = UnsafePointer(bytes + y * (rowBytes + 1))
      guard let filter = PNGFilter(rawValue: row[0]) else { return false }
      let result = bytes + y * rowBytes
      filter.undo(
        row + 1, above: y > 0 ? UnsafePointer(result - rowBytes) : nil, count: rowBytes,
        back: stream.layout.pixelBytes, into: result)
    }
    return true
  }

  /// Returns the image of the rows without filters; `nil` for an index beyond the palette, or too little memory.
  func image(profile: [UInt8]) -> Image? {
    guard case .indices(let table, let bits) = stream.samples else {
      if stream.depth == 2 { swapBytes() }
      guard
        let image = try? Image(
          owning: bytes, stream.layout.size, bands: stream.bands, bytesOfBand: stream.depth,
          profile: profile)
      else { return nil }
      isOwned = false
      return image
    }
    guard let image = try? Image(blank: stream.layout.size, bands: stream.bands, profile: profile),
      let pixels = image.pixels, lookUp(in: table, bits: bits, into: pixels)
    else { return nil }
    return image
  }

  /// Turns samples of 16 bits from big-endian (7.1) into this machine's order.
  private func swapBytes() {
    let count = rowBytes / 2 * stream.layout.size.height
    bytes.withMemoryRebound(to: UInt16.self, capacity: count) { samples in
      for index in 0..<count { samples[index] = UInt16(bigEndian: samples[index]) }
    }
  }

  /// Writes the pixels that the indices stand for. Returns `false` for an index beyond the table.
  private func lookUp(in table: [UInt32], bits: Int, into pixels: UnsafeMutablePointer<UInt8>)
    -> Bool
  {
    let (width, bands) = (stream.layout.size.width, stream.bands)
    let mask = 1 << bits - 1
    return table.withUnsafeBufferPointer { table in
      var highest = 0
      for y in 0..<stream.layout.size.height {
        let row = bytes + y * rowBytes
        var place = pixels + y * width * bands
        for x in 0..<width {
          let start = x &* bits
          let index = Int(row[start &>> 3]) &>> (8 &- bits &- start & 7) & mask
          highest = max(highest, index)
          let pixel = table[min(index, table.count &- 1)]
          for band in 0..<bands {
            place[band] = UInt8(truncatingIfNeeded: pixel &>> UInt32(8 &* band))
          }
          place += bands
        }
      }
      return highest < table.count
    }
  }
}
