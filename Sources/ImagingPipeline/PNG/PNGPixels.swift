// PNGPixels: decodes a PNG in one call, into memory.

import CVips
import Core
import Glibc

/// The pixels of a PNG.
///
/// libdeflate takes less than half of zlib's time, but needs the whole stream and room for all of
/// its rows. The pixels are those of libvips (`PNGPixelsTests`).
enum PNGPixels {
  /// The maximum bytes of the pixels, and of the source. libvips decodes larger PNGs in strips.
  static let maximumBytes = 24 << 20

  /// Returns the image; `nil` if libvips has to decode it: a kind of PNG that is not known here, a
  /// large one, damage, or too little memory.
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

  /// Returns the bytes that this takes: the pixels, the indices of a palette, and the compressed
  /// stream in one piece. `nil` if pixels or source have more than `maximumBytes`.
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

/// The rows of a PNG, with their filters and then without. The owner of their memory, unless it
/// becomes an image's.
private final class PNGPixelRows {
  private let stream: PNGStream
  /// The rows, each after the byte of its filter, and then without these bytes and without gaps.
  private let bytes: UnsafeMutablePointer<UInt8>
  private var isOwned = true

  private var rowBytes: Int { stream.layout.passes[0].rowBytes }

  /// Decompresses the rows. Returns `nil` for damage, another number of bytes than the header
  /// tells, or too little memory.
  init?(_ stream: PNGStream) {
    let count = stream.layout.byteCount
    guard let memory = malloc(count) else { return nil }
    self.stream = stream
    bytes = memory.bindMemory(to: UInt8.self, capacity: count)
    let isWhole = Self.withOnePiece(stream.compressed) {
      Zlib.inflate($0.baseAddress, $0.count, to: memory, count: count)
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

  /// Returns the image of the rows without filters; `nil` for an index beyond the palette, or too
  /// little memory.
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

/// The compressed rows of a PNG and what they mean; only for kinds of PNGs that `PNGPixels`
/// decodes.
struct PNGStream {
  /// What the samples of a row are.
  enum Samples {
    /// The bands themselves, of 8 or 16 bits.
    case whole
    /// Indices of a table, of 1 to 8 bits. An entry is a pixel, its bands from the lowest byte on.
    case indices([UInt32], bits: Int)
  }

  let layout: PNGLayout
  let samples: Samples
  /// The bands of a pixel: grey or RGB, with or without alpha.
  let bands: Int
  /// The bytes of a band.
  let depth: Int
  /// The contents of the `IDAT` chunks.
  let compressed: [UnsafeRawBufferPointer]

  /// The most `IDAT` chunks. Each takes memory, however short it is.
  private static let maximumChunks = 65_536

  /// Finds the chunks. Returns `nil` for an interlaced PNG, one with a transparent colour, and one
  /// in which libpng might see other pixels or none.
  ///
  /// - Parameter file: A PNG in which the checksums of critical chunks and of `tRNS` are right.
  init?(_ file: UnsafeRawBufferPointer) {
    guard file.count > 8 else { return nil }
    var chunks = PNGChunks(file)
    guard let head = try? chunks.next(), head.isOf("IHDR"),
      let layout = PNGLayout(header: head.content), layout.passes.count == 1,
      head.content[12] == 0
    else { return nil }
    let (bits, colour) = (Int(head.content[8]), head.content[9])
    var palette: UnsafeRawBufferPointer?
    var transparency: UnsafeRawBufferPointer?
    var compressed: [UnsafeRawBufferPointer] = []
    var isComplete = false
    loop: while let chunk = try? chunks.next() {
      switch chunk {
      case _ where chunk.isOf("PLTE"):
        guard palette == nil, compressed.isEmpty else { return nil }
        palette = chunk.content
      case _ where chunk.isOf("tRNS"):
        guard transparency == nil, compressed.isEmpty, colour != 3 || palette != nil else {
          return nil
        }
        transparency = chunk.content
      case _ where chunk.isOf("IDAT"):
        guard !isComplete, compressed.count < Self.maximumChunks else { return nil }
        compressed.append(chunk.content)
      case _ where chunk.isOf("IEND"): break loop
      default:
        guard !chunk.isCritical else { return nil }
        // `IDAT` chunks follow each other (5.6).
        isComplete = !compressed.isEmpty
      }
    }
    guard colour == 3 || transparency == nil, let first = compressed.first(where: { !$0.isEmpty }),
      Self.windowReaches(over: layout.byteCount, in: first[0])
    else { return nil }
    switch (colour, bits) {
    case (0, 1), (0, 2), (0, 4):
      guard palette == nil else { return nil }
      let most = 1 << bits - 1
      samples = .indices((0...most).map { UInt32($0 * 255 / most) }, bits: bits)
      bands = 1
    case (0, 8), (0, 16), (4, 8), (4, 16):
      guard palette == nil else { return nil }
      samples = .whole
      bands = colour == 0 ? 1 : 2
    case (2, 8), (2, 16), (6, 8), (6, 16):
      samples = .whole
      bands = colour == 2 ? 3 : 4
    case (3, 1), (3, 2), (3, 4), (3, 8):
      guard let palette, let table = Self.table(palette, transparency, bits: bits) else {
        return nil
      }
      samples = .indices(table, bits: bits)
      bands = transparency == nil ? 3 : 4
    default: return nil
    }
    depth = bits == 16 ? 2 : 1
    self.layout = layout
    self.compressed = compressed
  }

  /// Whether no distance can reach beyond the stream's window, which zlib refuses and libdeflate
  /// does not check.
  ///
  /// - Parameter method: The first byte of a zlib stream, which states the window's size (RFC 1950,
  ///   2.2).
  private static func windowReaches(over count: Int, in method: UInt8) -> Bool {
    let window = 1 << (8 + Int(method >> 4))
    // No distance is longer than the largest window (RFC 1951, 3.2.5).
    return window >= min(count, 32_768)
  }

  /// Returns the colours of a palette; `nil` if it is invalid.
  private static func table(
    _ palette: UnsafeRawBufferPointer, _ transparency: UnsafeRawBufferPointer?, bits: Int
  ) -> [UInt32]? {
    let count = palette.count / 3
    guard palette.count % 3 == 0, (1...1 << bits).contains(count),
      transparency.map({ (1...count).contains($0.count) }) ?? true
    else { return nil }
    return (0..<count).map { index in
      let alpha = transparency.map { index < $0.count ? $0[index] : 255 } ?? 0
      return UInt32(palette[3 * index]) | UInt32(palette[3 * index + 1]) << 8
        | UInt32(palette[3 * index + 2]) << 16 | UInt32(alpha) << 24
    }
  }
}
