// PNGStream: the chunks of a PNG that its pixels need.

import Model

/// The compressed rows of a PNG and what they mean; only for kinds of PNGs that `PNGPixels` decodes.
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

  /// Finds the chunks. Returns `nil` for an interlaced PNG, one with a transparent colour, and one in which libpng might
  /// see other pixels or none.
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

  /// Whether no distance can reach beyond the stream's window, which zlib refuses and libdeflate does not check.
  ///
  /// - Parameter method: The first byte of a zlib stream, which states the window's size (RFC 1950, 2.2).
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
