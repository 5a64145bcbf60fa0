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

  let size: PixelSize
  let layout: PNGLayout
  let samples: Samples
  /// The bands of a pixel: grey or RGB, with or without alpha.
  let bands: Int
  /// The bytes of a band.
  let depth: Int
  /// The contents of the `IDAT` chunks.
  let compressed: [UnsafeRawBufferPointer]

  /// Finds the chunks. Returns `nil` for an interlaced PNG, one with a transparent colour, and one that libpng might
  /// warn of or refuse.
  ///
  /// - Parameter file: A PNG whose checksums are right.
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
      switch chunk.type {
      case Array("PLTE".utf8):
        guard palette == nil, compressed.isEmpty else { return nil }
        palette = chunk.content
      case Array("tRNS".utf8):
        guard transparency == nil, compressed.isEmpty, colour != 3 || palette != nil else {
          return nil
        }
        transparency = chunk.content
      case Array("IDAT".utf8):
        guard !isComplete else { return nil }
        compressed.append(chunk.content)
      case Array("IEND".utf8): break loop
      default:
        guard !chunk.isCritical else { return nil }
        // `IDAT` chunks follow each other (5.6).
        isComplete = !compressed.isEmpty
      }
    }
    guard !compressed.isEmpty, colour == 3 || transparency == nil else { return nil }
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
    func side(_ offset: Int) -> Int {
      head.content[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
    size = PixelSize(width: side(0), height: side(4))
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
