// JPEGScanFrame: a JPEG frame and the state of its coefficients as scans fill it.

import Core

/// A Huffman-coded frame, in one scan or several.
final class JPEGScanFrame {
  /// One colour component.
  struct Component {
    let id: UInt8
    /// The blocks in a unit of an interleaved scan.
    let inUnit: (across: Int, down: Int)
    /// The blocks in a scan of this component alone (T.81, A.2.2).
    let columns: Int
    let rows: Int
    let quantizer: Int
    /// The lowest bit received for each coefficient; -1 if no bit was received.
    var lowestBits = [Int](repeating: -1, count: 64)
    /// For each block, a bit mask of its nonzero coefficients; empty until a progressive scan needs
    /// it.
    var masks: [UInt64] = []
    /// The factors of the coefficients, in file order, since the first scan; `nil` if they are not
    /// kept.
    var quantization: [UInt16]?
    /// The coefficients that are kept; `nil` if only codes are checked.
    var coefficients: JPEGCoefficients?
  }

  let isProgressive: Bool
  let size: PixelSize
  /// The units of an interleaved scan of all components.
  let units: (across: Int, down: Int)
  var components: [Component] = []

  /// Reads a frame header (T.81, B.2.2); `nil` if libjpeg rejects it or samples do not have 8 bits.
  init?(_ segment: UnsafeRawBufferPointer, isProgressive: Bool) {
    guard segment.count >= 6, segment[0] == 8 else { return nil }
    let height = Int(segment[1]) << 8 | Int(segment[2])
    let width = Int(segment[3]) << 8 | Int(segment[4])
    let count = Int(segment[5])
    guard width > 0, height > 0, (1...4).contains(count), segment.count == 6 + 3 * count else {
      return nil
    }
    self.isProgressive = isProgressive
    size = PixelSize(width: width, height: height)
    let factors = (0..<count).map { index in
      let both = segment[7 + 3 * index]
      return (across: Int(both >> 4), down: Int(both & 15))
    }
    guard factors.allSatisfy({ (1...4).contains($0.across) && (1...4).contains($0.down) }) else {
      return nil
    }
    let maximum = (
      across: factors.map(\.across).max() ?? 1, down: factors.map(\.down).max() ?? 1
    )
    func divided(_ side: Int, by divisor: Int) -> Int { (side + divisor - 1) / divisor }
    units = (divided(width, by: 8 * maximum.across), divided(height, by: 8 * maximum.down))
    for (index, own) in factors.enumerated() {
      guard segment[8 + 3 * index] < 4 else { return nil }
      components.append(
        Component(
          id: segment[6 + 3 * index], inUnit: own,
          columns: divided(width * own.across, by: 8 * maximum.across),
          rows: divided(height * own.down, by: 8 * maximum.down),
          quantizer: Int(segment[8 + 3 * index])))
    }
  }

  /// Whether at least the DC values of each component were received.
  var isComplete: Bool { components.allSatisfy { $0.lowestBits[0] >= 0 } }

  /// Whether every coefficient was received at full precision.
  var isRefined: Bool {
    components.allSatisfy { $0.lowestBits.allSatisfy { $0 == 0 } }
  }

  /// Records the coefficients of a scan.
  ///
  /// - Returns: A description of a fault in the order of scans; `nil` if the order is valid.
  func begin(_ scan: JPEGScanHeader) -> String? {
    for member in scan.members {
      for place in scan.places {
        let lowest = components[member.component].lowestBits[place]
        // The header uses 0 for a high bit that was not sent before.
        guard !isProgressive || max(lowest, 0) == scan.highBit, scan.highBit == 0 || lowest >= 0
        else { return "a JPEG's scan refines a missing scan" }
        components[member.component].lowestBits[place] = scan.lowBit
      }
      if scan.places.lowerBound > 0 {
        guard components[member.component].lowestBits[0] >= 0 else {
          return "a JPEG's scan of details comes before its means"
        }
        if components[member.component].masks.isEmpty {
          components[member.component].masks = [UInt64](
            repeating: 0,
            count: components[member.component].columns * components[member.component].rows)
        }
      }
    }
    return nil
  }
}

/// The header of a scan (T.81, B.2.3).
struct JPEGScanHeader {
  /// A component with the indices of its tables.
  struct Member {
    let component: Int
    let dc: Int
    let ac: Int
  }

  let members: [Member]
  /// The coefficients in this scan.
  let places: ClosedRange<Int>
  /// The lowest bit received before this scan; 0 if no bit was received.
  let highBit: Int
  /// The lowest bit in this scan.
  let lowBit: Int

  /// Reads the header; `nil` if libjpeg rejects it.
  init?(_ segment: UnsafeRawBufferPointer, of frame: JPEGScanFrame) {
    guard let count = segment.first.map({ Int($0) }), (1...4).contains(count),
      segment.count == 4 + 2 * count
    else { return nil }
    var members: [Member] = []
    for index in 0..<count {
      let id = segment[1 + 2 * index]
      let codes = segment[2 + 2 * index]
      guard let component = frame.components.firstIndex(where: { $0.id == id }),
        !members.contains(where: { $0.component == component }), codes >> 4 < 4, codes & 15 < 4
      else { return nil }
      members.append(Member(component: component, dc: Int(codes >> 4), ac: Int(codes & 15)))
    }
    let start = Int(segment[1 + 2 * count])
    let end = Int(segment[2 + 2 * count])
    let bits = segment[3 + 2 * count]
    self.members = members
    guard frame.isProgressive else {
      // libjpeg only warns of other values here and reads all coefficients.
      places = 0...63
      highBit = 0
      lowBit = 0
      return
    }
    // T.81, G.1.1.1.1: DC values come alone; AC values are of one component and are refined one bit
    // at a time.
    guard start == 0 ? end == 0 : start <= end && end <= 63 && count == 1 else { return nil }
    places = start...end
    highBit = Int(bits >> 4)
    lowBit = Int(bits & 15)
    guard lowBit <= 13, highBit == 0 || highBit == lowBit + 1 else { return nil }
  }

  /// Whether the scan refines coefficients received before.
  var isRefinement: Bool { highBit > 0 }
}

extension JPEGScanFrame {
  /// Whether the frame is grey or YCbCr. As in libjpeg, components named R, G and B are these.
  var isGreyOrYCbCr: Bool {
    (components.count == 1 || components.count == 3) && components.map(\.id) != Array("RGB".utf8)
  }

  /// Returns the size of the reduced image: eighths of the full size, rounded up.
  func reduced(eighths: Int) -> PixelSize {
    PixelSize(width: (size.width * eighths + 7) / 8, height: (size.height * eighths + 7) / 8)
  }

  /// The pixels that a side of a block can be reduced to.
  private static let sides: Set = [1, 2, 3, 4, 6, 8]

  /// The units of the image, and the blocks of the largest component in each. The blocks of a
  /// single component are never interleaved (T.81, A.2.2).
  var grid: (across: Int, down: Int, blocks: (across: Int, down: Int)) {
    guard components.count > 1 else {
      return (components[0].columns, components[0].rows, (1, 1))
    }
    return (
      units.across, units.down,
      (components.map(\.inUnit.across).max() ?? 1, components.map(\.inUnit.down).max() ?? 1)
    )
  }

  /// The blocks of a component in a unit.
  func blocks(of component: Component) -> (across: Int, down: Int) {
    components.count > 1 ? component.inUnit : (1, 1)
  }

  /// Returns the pixels that a component's blocks are reduced to: a subsampled one is reduced less,
  /// to the size of the others. `nil` for sizes without a transform.
  func side(of component: Component, eighths: Int) -> (across: Int, down: Int)? {
    let most = grid.blocks
    let own = blocks(of: component)
    let across = eighths * most.across / own.across
    let down = eighths * most.down / own.down
    let isWhole = most.across.isMultiple(of: own.across) && most.down.isMultiple(of: own.down)
    return isWhole && Self.sides.contains(across) && Self.sides.contains(down)
      ? (across, down) : nil
  }

  /// Makes room for the coefficients that the reduced image shows.
  ///
  /// - Returns: `false` for another kind than a progressive grey or YCbCr.
  func keepCoefficients(eighths: Int) -> Bool {
    guard isProgressive, isGreyOrYCbCr else { return false }
    for index in components.indices {
      guard let side = side(of: components[index], eighths: eighths) else { return false }
      let own = blocks(of: components[index])
      components[index].coefficients = JPEGCoefficients(
        kept: JPEGBasis.last(across: side.across, down: side.down) + 1,
        columns: grid.across * own.across, rows: grid.down * own.down)
    }
    return true
  }
}

/// The first coefficients, in file order, of all blocks of a component.
final class JPEGCoefficients {
  /// The coefficients of a block.
  let kept: Int
  /// The blocks of a row, with those that fill the last unit.
  let columns: Int
  /// Block by block, row by row. Owned; freed by `deinit`.
  let values: UnsafeMutablePointer<Int16>

  /// - Parameter kept: The coefficients of a block, 1–64.
  init(kept: Int, columns: Int, rows: Int) {
    self.kept = kept
    self.columns = columns
    values = .allocate(capacity: kept * columns * rows)
    values.initialize(repeating: 0, count: kept * columns * rows)
  }

  deinit { values.deallocate() }

  /// Returns where the coefficients of a block are.
  @inline(__always)
  func block(column: Int, row: Int) -> UnsafeMutablePointer<Int16> {
    values + (row &* columns &+ column) &* kept
  }
}
