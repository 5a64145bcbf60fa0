// Bitmap: decodes a Windows bitmap, from a BMP or an icon.

import Core

/// A bitmap with its header read and the presence of its pixels checked.
struct Bitmap {
  let header: BitmapHeader
  private let bytes: LittleEndianBytes
  /// The offset of an icon's mask: 1 bit per pixel, in which 1 is transparent. `nil` in a BMP.
  private let mask: Int?

  /// Reads the headers of a BMP.
  ///
  /// - Throws: The errors of `BitmapHeader`.
  init(_ source: UnsafeRawBufferPointer) throws(ImageError) {
    bytes = LittleEndianBytes(source)
    // The file header has 14 bytes; its last four hold the offset of the pixels.
    header = try BitmapHeader(bytes, at: 14, pixels: bytes.number(at: 10, width: 4))
    mask = nil
    try check()
  }

  /// Reads the header of a bitmap in an icon, which has no file header.
  init(inIcon source: UnsafeRawBufferPointer) throws(ImageError) {
    bytes = LittleEndianBytes(source)
    header = try BitmapHeader(bytes, at: 0, pixels: nil)
    mask = header.pixels + header.stride * header.size.height
    guard !isInRuns else { throw .undecodable(detail: "an icon in runs") }
    try check()
  }

  /// Returns an image with size, bands and profile but without pixels.
  func described() throws(ImageError) -> Image {
    let image = try Image(undecoded: header.size, bands: bands, profile: header.profile)
    if header.depth <= 8 { image.notePalette() }
    return image
  }

  /// Decodes the pixels.
  func image() throws(ImageError) -> Image {
    let width = header.size.width
    let height = header.size.height
    let image = try Image(blank: header.size, bands: bands, profile: header.profile)
    // If every pixel has alpha 0, the writer did not set the fourth byte, so the image is opaque.
    let isOpaque = try !hasVisiblePixel()
    var runs = BitmapRuns(
      source: try bytes.part(at: header.pixels, count: max(0, bytes.count - header.pixels)),
      width: width, depth: header.depth)
    var indices = [UInt8](repeating: 0, count: width)
    var row = [UInt8](repeating: 255, count: width * bands)
    for index in 0..<height {
      switch header.coding {
      case .runs:
        try runs.readRow(into: &indices)
        paint(indices, into: &row)
      case .indices:
        unpack(try stored(index), into: &indices)
        paint(indices, into: &row)
      case .masks(let masks): paint(try stored(index), masks: masks, into: &row)
      }
      if isOpaque || !header.hasAlpha, bands == 4 { try paintMask(index, into: &row) }
      try image.write(row, row: header.isTopDown ? index : height - 1 - index)
    }
    return image
  }

  private var bands: Int { header.hasAlpha || mask != nil ? 4 : 3 }

  private var isInRuns: Bool { if case .runs = header.coding { true } else { false } }

  /// Checks the file length against the header. Run-length data may have any length.
  private func check() throws(ImageError) {
    let rows = isInRuns ? 0 : (header.size.height - 1) * header.stride + header.rowBytes
    _ = try bytes.part(at: header.pixels, count: rows)
    // Many writers omit the mask if pixels have their own alpha.
    if let mask, !header.hasAlpha { _ = try bytes.part(at: mask, count: maskBytes) }
  }

  /// Returns the bytes of a row, by its index in the file.
  private func stored(_ index: Int) throws(ImageError) -> UnsafeRawBufferPointer {
    try bytes.part(at: header.pixels + index * header.stride, count: header.rowBytes)
  }

  // MARK: Colours

  /// Unpacks indices of 1 to 8 bits, most significant bits first.
  private func unpack(_ bytes: UnsafeRawBufferPointer, into indices: inout [UInt8]) {
    let perByte = 8 / header.depth
    let maximum = UInt8(truncatingIfNeeded: 1 << header.depth - 1)
    for x in indices.indices {
      // `stored` returns `rowBytes` bytes, so the largest index is the last x divided by `perByte`.
      let shift = (perByte - 1 - x % perByte) * header.depth
      indices[x] = bytes[x / perByte] >> UInt8(shift) & maximum
    }
  }

  private func paint(_ indices: [UInt8], into row: inout [UInt8]) {
    for (x, index) in indices.enumerated() {
      for band in 0..<3 { row[x * bands + band] = header.palette[Int(index) * 3 + band] }
    }
  }

  private func paint(
    _ bytes: UnsafeRawBufferPointer, masks: [BitmapMask], into row: inout [UInt8]
  ) {
    let bands = bands
    for x in 0..<header.size.width {
      let pixel = number(x, of: bytes)
      for (band, mask) in masks.enumerated() { row[x * bands + band] = mask[pixel] }
    }
  }

  /// Returns a pixel of 2 to 4 bytes from a row.
  @inline(__always)
  private func number(_ x: Int, of row: UnsafeRawBufferPointer) -> UInt32 {
    let width = header.depth / 8
    var number: UInt32 = 0
    // `row` has `rowBytes` bytes, that is `width` for each x.
    for index in 0..<width { number |= UInt32(row[x * width + index]) << UInt32(8 * index) }
    return number
  }

  // MARK: Alpha

  /// Returns whether any pixel has an alpha above 0; true for pixels without alpha.
  private func hasVisiblePixel() throws(ImageError) -> Bool {
    guard case .masks(let masks) = header.coding, masks.count == 4 else { return true }
    for index in 0..<header.size.height {
      let row = try stored(index)
      for x in 0..<header.size.width where masks[3][number(x, of: row)] != 0 { return true }
    }
    return false
  }

  private var maskStride: Int { (header.size.width + 31) / 32 * 4 }
  private var maskBytes: Int {
    (header.size.height - 1) * maskStride + (header.size.width + 7) / 8
  }

  /// Sets the alpha of a row from an icon's mask; opaque if the mask is missing or truncated.
  private func paintMask(_ index: Int, into row: inout [UInt8]) throws(ImageError) {
    let bits = try? mask.map { mask throws(ImageError) in
      try bytes.part(at: mask + index * maskStride, count: (header.size.width + 7) / 8)
    }
    for x in 0..<header.size.width {
      let isClear = bits.map { $0[x / 8] >> UInt8(7 - x % 8) & 1 == 1 } ?? false
      row[x * 4 + 3] = isClear ? 0 : 255
    }
  }
}

/// The header of a device-independent bitmap of any version, and the offsets of its parts. Follows
/// "Bitmap Header Types" in Microsoft's GDI documentation, plus the OS/2 headers of 12 and 16
/// to 64 bytes.
struct BitmapHeader {
  /// The storage of pixels.
  enum Coding {
    /// Palette indices of 1, 2, 4 or 8 bits.
    case indices
    /// Run-length encoded palette indices of 4 or 8 bits.
    case runs
    /// Numbers of 2, 3 or 4 bytes, with a mask for red, green, blue and optionally alpha.
    case masks([BitmapMask])
  }

  let size: PixelSize
  /// Whether the first row of the file is the top row.
  let isTopDown: Bool
  /// Bits per pixel.
  let depth: Int
  let coding: Coding
  /// 256 colours of three bytes, red first; black where the file defines no colour.
  let palette: [UInt8]
  /// The offset of the pixels from the start of the file, or of the header in an icon.
  let pixels: Int
  /// The ICC profile; empty if absent, and always empty in an icon.
  let profile: [UInt8]

  /// The bytes from one row to the next: rows are padded to 32 bits.
  var stride: Int { (size.width * depth + 31) / 32 * 4 }
  /// The bytes of a row that contain pixels.
  var rowBytes: Int { (size.width * depth + 7) / 8 }
  /// Whether pixels have an alpha.
  var hasAlpha: Bool {
    if case .masks(let masks) = coding { masks.count == 4 } else { false }
  }

  /// The longest side of a libvips image: `VIPS_MAX_COORD`.
  private static let longestSide = 10_000_000

  /// Reads the header.
  ///
  /// In an icon the pixels follow the header, the height includes the rows of the mask, and the
  /// fourth byte of 32-bit pixels is alpha.
  ///
  /// - Parameter pixels: The offset of the pixels as the file states it; `nil` in an icon.
  /// - Throws: `ImageError.undecodable`; `.unsupportedFormat` for compressions that only printers
  ///   and OS/2 use.
  init(_ bytes: LittleEndianBytes, at start: Int, pixels: Int?) throws(ImageError) {
    let length = try bytes.number(at: start, width: 4)
    guard FormatSigns.bitmapHeaders.contains(length) else {
      throw .undecodable(detail: "a bitmap with a header of \(length) bytes")
    }
    let isCore = length == 12
    // Fields that a short OS/2 header lacks are 0.
    func number(at offset: Int) throws(ImageError) -> Int {
      offset + 4 <= length ? try bytes.number(at: start + offset, width: 4) : 0
    }
    let isIcon = pixels == nil
    let width: Int
    var height: Int
    if isCore {
      width = try bytes.number(at: start + 4, width: 2)
      height = try bytes.number(at: start + 6, width: 2)
      depth = try bytes.number(at: start + 10, width: 2)
    } else {
      width = Int(Int32(truncatingIfNeeded: try bytes.number(at: start + 4, width: 4)))
      height = Int(Int32(truncatingIfNeeded: try bytes.number(at: start + 8, width: 4)))
      depth = try bytes.number(at: start + 14, width: 2)
    }
    isTopDown = height < 0
    height = isIcon ? abs(height) / 2 : abs(height)
    guard (1...Self.longestSide).contains(width), (1...Self.longestSide).contains(height) else {
      throw .undecodable(detail: "a bitmap of \(width) by \(height)")
    }
    size = PixelSize(width: width, height: height)

    let compression = try number(at: 16)
    // The masks are part of the longer headers, and follow the 40-byte header.
    let hasMasks =
      (compression == 3 || compression == 6) && [40, 52, 56, 108, 124].contains(length)
    let masksBehind = hasMasks && length == 40 ? (compression == 6 ? 16 : 12) : 0
    let hasAlphaMask = compression == 6 || length >= 56
    switch (compression, depth) {
    case (0, 1), (0, 2), (0, 4), (0, 8): coding = .indices
    case (1, 8), (2, 4): coding = .runs
    case (0, 16): coding = try .masks(Self.masks([0x7c00, 0x03e0, 0x001f]))
    case (0, 24): coding = try .masks(Self.masks(Self.bytewise))
    case (0, 32): coding = try .masks(Self.masks(Self.bytewise + (isIcon ? [0xff00_0000] : [])))
    case (_, 16) where hasMasks, (_, 32) where hasMasks:
      var values: [UInt32] = []
      for index in 0..<(hasAlphaMask ? 4 : 3) {
        values.append(UInt32(try bytes.number(at: start + 40 + 4 * index, width: 4)))
      }
      // An empty alpha mask means that pixels have no alpha.
      if values.count == 4, values[3] == 0 { values.removeLast() }
      coding = try .masks(Self.masks(values))
    case (3...5, _):
      throw .unsupportedFormat(detail: "a bitmap of compression \(compression), depth \(depth)")
    default: throw .undecodable(detail: "a bitmap of compression \(compression), depth \(depth)")
    }

    let table = start + length + masksBehind
    let entry = isCore ? 3 : 4
    var colors = depth <= 8 ? 1 << depth : 0
    let stated = try number(at: 32)
    if stated > 0 { colors = min(colors, stated) }
    // OS/2 writers omit colours; the offset of the pixels then gives the length of the palette.
    if let pixels, pixels > table { colors = min(colors, (pixels - table) / entry) }
    var palette = [UInt8](repeating: 0, count: 256 * 3)
    let list = try bytes.part(at: table, count: colors * entry)
    for index in 0..<colors {
      for band in 0..<3 { palette[index * 3 + band] = list[index * entry + 2 - band] }
    }
    self.palette = palette
    // Images of more than 8 bits may have a palette for displays with few colours; the pixels
    // follow it.
    let end = table + (depth <= 8 ? colors : min(stated, 256)) * entry
    self.pixels = pixels.map { $0 < table ? end : $0 } ?? end
    // An icon may hold many images that share one profile of any length, so profiles of icons are
    // not copied.
    profile = length == 124 && !isIcon ? Self.profile(in: bytes, at: start) : []
  }

  private static let bytewise: [UInt32] = [0xff0000, 0x00ff00, 0x0000ff]

  private static func masks(_ values: [UInt32]) throws(ImageError) -> [BitmapMask] {
    var masks: [BitmapMask] = []
    for value in values {
      guard let mask = BitmapMask(value) else {
        throw .undecodable(detail: "a bitmap's mask of \(String(value, radix: 16))")
      }
      masks.append(mask)
    }
    return masks
  }

  /// Returns the profile of a 124-byte header (`PROFILE_EMBEDDED`); its offset counts from the
  /// start of the header. A truncated profile counts as absent.
  private static func profile(in bytes: LittleEndianBytes, at start: Int) -> [UInt8] {
    let embedded = 0x4d42_4544  // "MBED"
    guard (try? bytes.number(at: start + 56, width: 4)) == embedded,
      let offset = try? bytes.number(at: start + 112, width: 4),
      let count = try? bytes.number(at: start + 116, width: 4),
      let profile = try? bytes.part(at: start + offset, count: count)
    else { return [] }
    return Array(profile)
  }
}

/// A colour mask of a pixel, with the conversion of its value to 8 bits.
struct BitmapMask {
  private let shift: UInt32
  private let low: UInt32
  private let values: [UInt8]

  /// Returns `nil` if the mask's bits are not contiguous. Of more than 8 bits, only the upper 8 are
  /// used.
  init?(_ mask: UInt32) {
    let bits = mask.nonzeroBitCount
    guard bits > 0 else {
      shift = 0
      low = 0
      values = [0]
      return
    }
    guard bits == 32 - mask.leadingZeroBitCount - mask.trailingZeroBitCount else { return nil }
    let kept = min(bits, 8)
    shift = UInt32(mask.trailingZeroBitCount + bits - kept)
    low = 1 << UInt32(kept) - 1
    let maximum = Int(low)
    values = (0...maximum).map { UInt8(($0 * 255 + maximum / 2) / maximum) }
  }

  /// The colour value of a pixel, 0–255.
  subscript(pixel: UInt32) -> UInt8 { values[Int(pixel >> shift & low)] }
}

/// Decodes runs row by row, in the order of the file ("Bitmap Compression" in Microsoft's GDI
/// documentation).
///
/// As in GDI, skipped pixels keep the first colour, and pixels past the end of a row are cut off.
struct BitmapRuns {
  let source: UnsafeRawBufferPointer
  let width: Int
  /// Bits per pixel: 4 or 8.
  let depth: Int
  var position = 0
  /// The column of the next pixel. A row may start at a column other than 0, because a jump keeps
  /// the column.
  var column = 0
  /// The rows that a jump leaves empty.
  var emptyRows = 0
  var isOver = false

  /// Reads the next row.
  ///
  /// - Parameter row: The buffer for the indices, one per pixel.
  /// - Throws: `ImageError.undecodable` if the data ends too early.
  mutating func readRow(into row: inout [UInt8]) throws(ImageError) {
    for index in row.indices { row[index] = 0 }
    if isOver { return }
    if emptyRows > 0 {
      emptyRows -= 1
      return
    }
    while true {
      // The end-of-row code may be missing only after a complete row.
      if position == source.count, column >= width { return column = 0 }
      switch (try next(), try next()) {
      case (0, 0): return column = 0
      case (0, 1):
        isOver = true
        return
      case (0, 2):
        let right = try next()
        let down = try next()
        column += right
        if down > 0 {
          emptyRows = down - 1
          return
        }
      case (0, let count): try copy(count, into: &row)
      case (let count, let value):
        for index in 0..<count { put(depth == 8 ? value : half(value, at: index), into: &row) }
      }
    }
  }

  /// Copies uncompressed pixels; an odd number of bytes is padded.
  private mutating func copy(_ count: Int, into row: inout [UInt8]) throws(ImageError) {
    let bytes = depth == 8 ? count : (count + 1) / 2
    var value = 0
    for index in 0..<count {
      if depth == 8 || index.isMultiple(of: 2) { value = try next() }
      put(depth == 8 ? value : half(value, at: index), into: &row)
    }
    // Some writers omit the padding of the last byte.
    if !bytes.isMultiple(of: 2), position < source.count { position += 1 }
  }

  private mutating func put(_ value: Int, into row: inout [UInt8]) {
    if column < width { row[column] = UInt8(value) }
    column += 1
  }

  /// Returns 4 bits of a byte; the upper half comes first.
  private func half(_ value: Int, at index: Int) -> Int {
    index.isMultiple(of: 2) ? value >> 4 : value & 15
  }

  private mutating func next() throws(ImageError) -> Int {
    guard position < source.count else { throw .undecodable(detail: "a bitmap's runs end early") }
    defer { position += 1 }
    return Int(source[position])
  }
}

/// A file's bytes, with little-endian numbers and checked access.
struct LittleEndianBytes {
  private let reader: ByteReader

  init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes, order: .little) }

  /// The number of bytes.
  var count: Int { reader.bytes.count }

  /// Returns a part of the bytes.
  ///
  /// - Throws: `ImageError.undecodable` if the part exceeds the bytes.
  func part(at offset: Int, count: Int) throws(ImageError) -> UnsafeRawBufferPointer {
    guard let part = try? reader.part(at: offset, count: count) else {
      throw .undecodable(
        detail: "\(count) bytes at offset \(offset) exceed the \(self.count) available")
    }
    return part
  }

  /// Reads an unsigned number of 1 to 4 bytes.
  func number(at offset: Int, width: Int) throws(ImageError) -> Int {
    try part(at: offset, count: width).reversed().reduce(0) { $0 << 8 | Int($1) }
  }
}
