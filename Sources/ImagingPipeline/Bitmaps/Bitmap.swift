// Bitmap: decodes a Windows bitmap, from a BMP or an icon.

import Model

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
      try bytes.part(from: header.pixels), width: width, depth: header.depth)
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
