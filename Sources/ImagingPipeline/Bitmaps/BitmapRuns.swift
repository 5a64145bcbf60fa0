// BitmapRuns: decodes rows of palette indices from run-length data (RLE4 and RLE8).

import Model

/// Decodes runs row by row, in the order of the file ("Bitmap Compression" in Microsoft's GDI
/// documentation).
///
/// As in GDI, skipped pixels keep the first colour, and pixels past the end of a row are cut off.
struct BitmapRuns {
  private let source: UnsafeRawBufferPointer
  private let width: Int
  /// Bits per pixel: 4 or 8.
  private let depth: Int
  private var position = 0
  /// The column of the next pixel. A row may start at a column other than 0, because a jump keeps
  /// the column.
  private var column = 0
  /// The rows that a jump leaves empty.
  private var emptyRows = 0
  private var isOver = false

  init(_ source: UnsafeRawBufferPointer, width: Int, depth: Int) {
    self.source = source
    self.width = width
    self.depth = depth
  }

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
      if position == source.count, column >= width { return endRow() }
      switch (try next(), try next()) {
      case (0, 0): return endRow()
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

  private mutating func endRow() { column = 0 }

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
