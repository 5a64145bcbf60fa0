// PNGRows: the rows of a PNG, with and without filters.

import Glibc
import Model

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
}

extension PNGLayout {
  /// Returns the first pixel and the distances of pixels in each pass of Adam7 (8.1), or in the only pass.
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
  /// For each row the filter whose result has the smallest sum of absolute values, as most encoders choose.
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
