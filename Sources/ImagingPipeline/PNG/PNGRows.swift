// PNGRows: the rows of a PNG, with and without filters.

import Core
import Glibc

/// The layout of a PNG's rows (third edition, 11.2.1).
struct PNGLayout {
  /// The size in pixels.
  let size: PixelSize
  /// The bytes of each row, without the byte of its filter, pass by pass. A PNG that is not
  /// interlaced has one pass.
  let passes: [(rowBytes: Int, rows: Int)]
  /// Whether the rows come in the passes of Adam7.
  let isInterlaced: Bool
  /// The bytes of a pixel, at least 1: how far back the filters look.
  let pixelBytes: Int

  /// The bytes of all rows with their filters.
  let byteCount: Int

  /// The maximum of `byteCount`.
  private static let maximumBytes = 1 << 30

  /// Reads the content of `IHDR`. Returns `nil` if it is invalid or too large.
  init?(header: UnsafeRawBufferPointer) {
    guard header.count == 13, header[10] == 0, header[11] == 0, header[12] <= 1 else { return nil }
    func side(_ offset: Int) -> Int {
      header[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }
    let (width, height) = (side(0), side(4))
    let channels = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][header[9]]
    guard let channels, [1, 2, 4, 8, 16].contains(header[8]), (1...1_000_000).contains(width),
      (1...1_000_000).contains(height)
    else { return nil }
    size = PixelSize(width: width, height: height)
    let bits = Int(header[8]) * channels
    pixelBytes = max(bits / 8, 1)
    isInterlaced = header[12] == 1
    passes = Self.grids(isInterlaced: isInterlaced).compactMap { x, y, across, down in
      let columns = (width - x + across - 1) / across
      let rows = (height - y + down - 1) / down
      return columns > 0 && rows > 0 ? ((columns * bits + 7) / 8, rows) : nil
    }
    byteCount = passes.reduce(0) { $0 + (1 + $1.rowBytes) * $1.rows }
    guard byteCount <= Self.maximumBytes else { return nil }
  }

  /// Returns the first pixel and the distances of pixels in each pass of Adam7 (8.1), or in the
  /// only pass.
  static func grids(isInterlaced: Bool) -> [(x: Int, y: Int, across: Int, down: Int)] {
    guard isInterlaced else { return [(0, 0, 1, 1)] }
    return [
      (0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2),
      (0, 1, 1, 2),
    ]
  }
}

/// A filter of a row (third edition, 9.2).
enum PNGFilter: UInt8, CaseIterable {
  case none, sub, up, average, paeth

  /// Returns the byte that the filter subtracts.
  @inline(__always)
  func prediction(left: UInt8, above: UInt8, corner: UInt8) -> UInt8 {
    switch self {
    case .none: return 0
    case .sub: return left
    case .up: return above
    case .average: return UInt8((Int(left) + Int(above)) / 2)
    case .paeth:
      let (a, b, c) = (Int(left), Int(above), Int(corner))
      let (toLeft, toAbove, toCorner) = (abs(b - c), abs(a - c), abs(a + b - 2 * c))
      if toLeft <= toAbove && toLeft <= toCorner { return left }
      return toAbove <= toCorner ? above : corner
    }
  }
}

/// How the filters of all rows are chosen.
enum PNGFiltering: Hashable {
  /// The same filter for each row.
  case each(PNGFilter)
  /// For each row the filter whose result has the smallest sum of absolute values, as most encoders
  /// choose.
  case leastSum
  /// For each row the filter whose result has the least entropy.
  case leastEntropy
}

extension PNGLayout {
  /// Returns the rows without filters, each with the filter byte 0; `nil` if a filter is unknown.
  ///
  /// - Parameter rows: `byteCount` bytes.
  func unfiltered(_ rows: [UInt8]) -> [UInt8]? {
    var plain = [UInt8](repeating: 0, count: rows.count)
    let isKnown = rows.withUnsafeBufferPointer { rows in
      plain.withUnsafeMutableBufferPointer { plain in
        guard let from = rows.baseAddress, let to = plain.baseAddress else { return true }
        return forEachRow { row, above in
          let start = row.lowerBound
          guard let filter = PNGFilter(rawValue: from[start]) else { return false }
          filter.undo(
            from + start + 1, above: above.map { UnsafePointer(to + $0 + 1) },
            count: row.count - 1, back: pixelBytes, into: to + start + 1)
          return true
        }
      }
    }
    return isKnown ? plain : nil
  }

  /// Returns the rows with filters.
  ///
  /// - Parameter plain: the rows without filters, each with the filter byte 0.
  func filtered(_ plain: [UInt8], by filtering: PNGFiltering) -> [UInt8] {
    if filtering == .each(.none) { return plain }
    var result = [UInt8](repeating: 0, count: plain.count)
    var attempt = [UInt8](repeating: 0, count: (passes.map(\.rowBytes).max() ?? 0) + 1)
    let filters: [PNGFilter] =
      if case .each(let filter) = filtering { [filter] } else { PNGFilter.allCases }
    forEachRow { row, above in
      var least = Int.max
      for filter in filters {
        apply(filter, to: plain, row, above: above, into: &attempt)
        let cost = filters.count == 1 ? 0 : filtering.cost(of: attempt, count: row.count)
        guard cost < least else { continue }
        least = cost
        result.replaceSubrange(row, with: attempt[..<row.count])
      }
      return true
    }
    return result
  }

  /// Calls `body` with the place of each row, its filter byte first, and the start of the row above
  /// it in the same pass. Ends when `body` returns `false`, and returns what it returned last.
  @discardableResult
  private func forEachRow(_ body: (_ row: Range<Int>, _ above: Int?) -> Bool) -> Bool {
    var start = 0
    for pass in passes {
      let length = 1 + pass.rowBytes
      for index in 0..<pass.rows {
        guard body(start..<start + length, index > 0 ? start - length : nil) else { return false }
        start += length
      }
    }
    return true
  }

  /// Filters a row.
  private func apply(
    _ filter: PNGFilter, to plain: [UInt8], _ row: Range<Int>, above: Int?,
    into result: inout [UInt8]
  ) {
    let back = pixelBytes
    let start = row.lowerBound
    plain.withUnsafeBufferPointer { plain in
      result.withUnsafeMutableBufferPointer { result in
        result[0] = filter.rawValue
        for index in 1..<row.count {
          let isFirst = index <= back
          let left = isFirst ? 0 : plain[start + index - back]
          let up = above.map { plain[$0 + index] } ?? 0
          let corner = isFirst ? 0 : above.map { plain[$0 + index - back] } ?? 0
          result[index] =
            plain[start + index] &- filter.prediction(left: left, above: up, corner: corner)
        }
      }
    }
  }
}

extension PNGFiltering {
  /// n × log2 n for the counts of bytes in a row, times 256. Longer rows count as the longest here.
  private static let weights: [Int] = (0...65_536).map {
    $0 == 0 ? 0 : Int(256 * Double($0) * log2(Double($0)))
  }

  /// Returns how many bytes a filtered row may take, in a measure of its own.
  ///
  /// - Parameter row: the filter byte and the row, in the first `count` bytes.
  fileprivate func cost(of row: [UInt8], count: Int) -> Int {
    row.withUnsafeBufferPointer { row in
      guard self == .leastEntropy else {
        var sum = 0
        for index in 1..<count { sum += Int(Int8(bitPattern: row[index]).magnitude) }
        return sum
      }
      return withUnsafeTemporaryAllocation(of: Int.self, capacity: 256) { counts in
        counts.initialize(repeating: 0)
        for index in 1..<count { counts[Int(row[index])] += 1 }
        return -counts.reduce(0) { $0 + Self.weights[min($1, 65_536)] }
      }
    }
  }
}

extension PNGFilter {
  /// Undoes the filter of a row.
  ///
  /// - Parameters:
  ///   - row: The row, `count` bytes.
  ///   - above: The row above it without its filter; `nil` for the first row of a pass.
  ///   - back: The bytes of a pixel, at least 1: how far back the filter looks.
  ///   - result: Where the row without its filter goes. May overlap `row` if it begins at least one
  ///     byte before it.
  func undo(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>?, count: Int, back: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) {
    switch (self, above) {
    case (.none, _), (.up, nil): memmove(result, row, count)
    case (.up, let above?): Self.undoUp(row, above: above, count: count, into: result)
    // Above the first row are zeros: the filter predicts the pixel on the left.
    case (.sub, _), (.paeth, nil): Self.undoSub(row, count: count, back: back, into: result)
    case (.average, _), (.paeth, _):
      undoPixels(row, above: above, count: count, back: back, into: result)
    }
  }

  private static func undoUp(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>, count: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) {
    var index = 0
    while index + 16 <= count {
      let sum = sixteen(row + index) &+ sixteen(above + index)
      UnsafeMutableRawPointer(result + index).storeBytes(of: sum, as: SIMD16<UInt8>.self)
      index += 16
    }
    while index < count {
      result[index] = row[index] &+ above[index]
      index += 1
    }
  }

  private static func undoSub(
    _ row: UnsafePointer<UInt8>, count: Int, back: Int, into result: UnsafeMutablePointer<UInt8>
  ) {
    for index in 0..<min(back, count) { result[index] = row[index] }
    guard back < count else { return }
    for index in back..<count { result[index] = row[index] &+ result[index &- back] }
  }

  /// Undoes `average` or `paeth`: pixels of 3 bytes or more at once.
  private func undoPixels(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>?, count: Int, back: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) {
    var done = 0
    if let above {
      switch back {
      case 3: done = undoPixels(row, above: above, count: count, of: 3, into: result)
      case 4: done = undoPixels(row, above: above, count: count, of: 4, into: result)
      case 6: done = undoPixels(row, above: above, count: count, of: 6, into: result)
      case 8: done = undoPixels(row, above: above, count: count, of: 8, into: result)
      default: break
      }
    }
    for index in done..<count {
      let isFirst = index < back
      result[index] =
        row[index]
        &+ prediction(
          left: isFirst ? 0 : result[index &- back], above: above?[index] ?? 0,
          corner: isFirst ? 0 : above?[index &- back] ?? 0)
    }
  }

  /// Undoes the filter of pixels of `size` bytes, a constant; all but those that are less than a
  /// vector from the end.
  ///
  /// - Returns: The bytes that are done.
  @inline(__always)
  private func undoPixels(
    _ row: UnsafePointer<UInt8>, above: UnsafePointer<UInt8>, count: Int, of size: Int,
    into result: UnsafeMutablePointer<UInt8>
  ) -> Int {
    var (left, corner) = (SIMD8<Int16>.zero, SIMD8<Int16>.zero)
    let isPaeth = self == .paeth
    var index = 0
    while index &+ (size > 4 ? 8 : 4) <= count {
      let up = Self.pixel(above + index, of: size)
      let predicted = isPaeth ? Self.paeth(left, up, corner) : (left &+ up) &>> 1
      left = (Self.pixel(row + index, of: size) &+ predicted) & 0xff
      corner = up
      let place = UnsafeMutableRawPointer(result + index)
      let bytes = SIMD8<UInt8>(truncatingIfNeeded: left)
      switch size {
      case 8: place.storeBytes(of: bytes, as: SIMD8<UInt8>.self)
      case 6:
        // No more than the pixel: what follows may be of the row.
        place.storeBytes(of: bytes.lowHalf, as: SIMD4<UInt8>.self)
        place.storeBytes(of: bytes.highHalf.lowHalf, toByteOffset: 4, as: SIMD2<UInt8>.self)
      // The byte after a pixel of three is overwritten by the next one.
      default: place.storeBytes(of: bytes.lowHalf, as: SIMD4<UInt8>.self)
      }
      index &+= size
    }
    return index
  }

  /// The predictor of Paeth (third edition, 9.4) for each byte.
  @inline(__always)
  private static func paeth(
    _ left: SIMD8<Int16>, _ above: SIMD8<Int16>, _ corner: SIMD8<Int16>
  ) -> SIMD8<Int16> {
    let (down, across) = (above &- corner, left &- corner)
    let toLeft = magnitude(down)
    let toAbove = magnitude(across)
    let toCorner = magnitude(down &+ across)
    let far = corner.replacing(with: above, where: toAbove .<= toCorner)
    return far.replacing(with: left, where: (toLeft .<= toAbove) .& (toLeft .<= toCorner))
  }

  @inline(__always)
  private static func magnitude(_ value: SIMD8<Int16>) -> SIMD8<Int16> {
    pointwiseMax(value, 0 &- value)
  }

  /// Loads a pixel; what follows it is in the lanes after it.
  @inline(__always)
  private static func pixel(_ place: UnsafePointer<UInt8>, of size: Int) -> SIMD8<Int16> {
    let place = UnsafeRawPointer(place)
    guard size > 4 else {
      let bytes = place.loadUnaligned(as: SIMD4<UInt8>.self)
      return SIMD8(lowHalf: SIMD4<Int16>(truncatingIfNeeded: bytes), highHalf: .zero)
    }
    return SIMD8<Int16>(truncatingIfNeeded: place.loadUnaligned(as: SIMD8<UInt8>.self))
  }

  @inline(__always)
  private static func sixteen(_ place: UnsafePointer<UInt8>) -> SIMD16<UInt8> {
    UnsafeRawPointer(place).loadUnaligned(as: SIMD16<UInt8>.self)
  }
}
