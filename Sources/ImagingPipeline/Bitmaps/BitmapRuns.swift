// BitmapRuns: rows of palette indices out of a bitmap's runs (RLE4 and RLE8).

import Model

/// Reads runs row by row, in the order of the file ("Bitmap Compression" in Microsoft's documentation of GDI).
///
/// As GDI does it, what is left out keeps the first colour, and what runs past the end of a row is cut off.
struct BitmapRuns {
  private let source: UnsafeRawBufferPointer
  private let width: Int
  /// 4 or 8.
  private let depth: Int
  private var position = 0
  /// Where in its row the next pixel goes: not always 0 at a row's beginning, since a jump keeps its column.
  private var column = 0
  /// Rows that a jump leaves empty before the next one.
  private var emptyRows = 0
  private var isOver = false

  init(_ source: UnsafeRawBufferPointer, width: Int, depth: Int) {
    self.source = source
    self.width = width
    self.depth = depth
  }

  /// Reads the next row.
  ///
  /// - Parameter row: As many indices as a row has pixels.
  /// - Throws: `ImageError.undecodable` where the runs end too early.
  mutating func readRow(into row: inout [UInt8]) throws(ImageError) {
    for index in row.indices { row[index] = 0 }
    if isOver { return }
    if emptyRows > 0 {
      emptyRows -= 1
      return
    }
    while true {
      // Only where nothing is missing may the mark of a row's end be.
      if position == source.count, column >= width { return endRow() }
      switch (try next(), try next()) {
      case (0, 0): return endRow()
      case (0, 1):
        isOver = true
        return
      case (0, 2):
        let (right, down) = (try next(), try next())
        column += right
        if down > 0 {
          emptyRows = down - 1
          return
        }
      case (0, let count): try copy(count, into: &row)
      case (let count, let value):
        for index in 0..<count { put(depth == 8 ? value : half(value, index), into: &row) }
      }
    }
  }

  private mutating func endRow() { column = 0 }

  /// Pixels one by one; an odd number of bytes is filled up.
  private mutating func copy(_ count: Int, into row: inout [UInt8]) throws(ImageError) {
    let bytes = depth == 8 ? count : (count + 1) / 2
    var value = 0
    for index in 0..<count {
      if depth == 8 || index.isMultiple(of: 2) { value = try next() }
      put(depth == 8 ? value : half(value, index), into: &row)
    }
    // Some leave the last one's filling out, too.
    if !bytes.isMultiple(of: 2), position < source.count { position += 1 }
  }

  private mutating func put(_ value: Int, into row: inout [UInt8]) {
    if column < width { row[column] = UInt8(value) }
    column += 1
  }

  /// The upper half of a byte comes first.
  private func half(_ value: Int, _ index: Int) -> Int {
    index.isMultiple(of: 2) ? value >> 4 : value & 15
  }

  private mutating func next() throws(ImageError) -> Int {
    guard position < source.count else { throw .undecodable(detail: "a bitmap's runs end early") }
    defer { position += 1 }
    return Int(source[position])
  }
}
