// JPEGScan: walks over one scan of a JPEG, code by code, from restart marker to restart marker.

/// Walks over the blocks of a scan and consumes their bits; keeps the coefficients that the frame
/// has room for.
struct JPEGScan {
  let header: JPEGScanHeader
  /// The units between two restart markers; 0 means no restarts.
  let restartInterval: Int
  /// The quantization factor of the DC value, for each member.
  let quantizers: [Int]

  /// The maximum distance of a block's dequantized DC value from 0: twice the range of 8-bit
  /// samples (T.81, A.3.3).
  private static let maximumMean = 2_048
  /// The maximum bits of a number with 8-bit samples, plus one for encoders that round up.
  private static let maximumBits = (mean: 12, detail: 11)

  private static let senseless = JPEGVerdict.damaged(.warning, "a JPEG has invalid codes")

  /// Reads the scan from its first bit to the last bit of its last block.
  func read(
    _ bits: inout JPEGBits, frame: JPEGScanFrame, tables: inout JPEGCodeTables
  ) -> JPEGVerdict {
    var walks: [JPEGBlockWalk] = []
    for (member, quantizer) in zip(header.members, quantizers) {
      let needsMeans = header.places.lowerBound == 0 && !header.isRefinement
      let needsDetails = header.places.upperBound > 0
      let dc = needsMeans ? tables.table(member.dc) : nil
      let ac = needsDetails ? tables.table(4 + member.ac) : nil
      // libjpeg has default tables for files that omit them.
      guard (dc != nil) == needsMeans, (ac != nil) == needsDetails else { return .unknown }
      walks.append(
        JPEGBlockWalk(
          dc: dc, ac: ac, header: header, isProgressive: frame.isProgressive,
          kept: frame.components[member.component].coefficients?.kept ?? 0,
          maximumMean: max(max(Self.maximumMean / max(quantizer, 1), 2) >> header.lowBit, 1),
          maximumBits: Self.maximumBits))
    }
    guard walks.count > 1 else {
      return walks.withUnsafeMutableBufferPointer { walks in
        readOne(&bits, walks: walks, component: &frame.components[header.members[0].component])
      }
    }
    // T.81, A.2.3: interleaved units with blocks of each component.
    let counts = header.members.map { member in
      let own = frame.components[member.component].inUnit
      return own.across * own.down
    }
    guard counts.reduce(0, +) <= 10 else { return .unknown }
    let units = frame.units
    let stores = header.members.compactMap { frame.components[$0.component].coefficients }
    guard stores.isEmpty else {
      let sizes = header.members.map { frame.components[$0.component].inUnit }
      return walks.withUnsafeMutableBufferPointer { walks in
        readMeans(&bits, walks: walks, into: stores, sizes: sizes, units: units)
      }
    }
    return walks.withUnsafeMutableBufferPointer { walks in
      readUnits(&bits, walks: walks, counts: counts, units: units)
    }
  }

  /// Reads an interleaved scan of a progressive JPEG: the DC values, and keeps them.
  ///
  /// - Parameters:
  ///   - stores: Where the values of each member go.
  ///   - sizes: The blocks of each member in a unit.
  private func readMeans(
    _ bits: inout JPEGBits, walks: UnsafeMutableBufferPointer<JPEGBlockWalk>,
    into stores: [JPEGCoefficients], sizes: [(across: Int, down: Int)],
    units: (across: Int, down: Int)
  ) -> JPEGVerdict {
    var restarts = JPEGRestarts(
      interval: restartInterval, counts: sizes.map { $0.across * $0.down }, of: header.places)
    for unitRow in 0..<units.down {
      for unit in 0..<units.across {
        guard restarts.next(&bits, walks: walks) else { return Self.ended(bits) }
        for index in walks.indices {
          let (across, down) = sizes[index]
          for place in 0..<across &* down {
            let block = stores[index].block(
              column: unit &* across &+ place % across, row: unitRow &* down &+ place / across)
            guard walks[index].readWhole(&bits, into: block) else {
              return bits.isPastEnd ? Self.ended(bits) : Self.senseless
            }
          }
        }
      }
      guard !bits.isPastEnd else { return Self.ended(bits) }
    }
    restarts.skipStrayBytes(&bits, walks: walks)
    return .whole
  }

  private func readUnits(
    _ bits: inout JPEGBits, walks: UnsafeMutableBufferPointer<JPEGBlockWalk>, counts: [Int],
    units: (across: Int, down: Int)
  ) -> JPEGVerdict {
    var restarts = JPEGRestarts(interval: restartInterval, counts: counts, of: header.places)
    for _ in 0..<units.down {
      for _ in 0..<units.across {
        guard restarts.next(&bits, walks: walks) else { return Self.ended(bits) }
        for index in walks.indices {
          for _ in 0..<counts[index] {
            guard walks[index].readWhole(&bits) else {
              return bits.isPastEnd ? Self.ended(bits) : Self.senseless
            }
          }
        }
      }
      guard !bits.isPastEnd else { return Self.ended(bits) }
    }
    restarts.skipStrayBytes(&bits, walks: walks)
    return .whole
  }

  /// Reads a scan of one component: its own blocks, row by row.
  private func readOne(
    _ bits: inout JPEGBits, walks: UnsafeMutableBufferPointer<JPEGBlockWalk>,
    component: inout JPEGScanFrame.Component
  ) -> JPEGVerdict {
    let isOfDetails = header.places.lowerBound > 0
    var restarts = JPEGRestarts(interval: restartInterval, counts: [1], of: header.places)
    let rows = component.rows
    let columns = component.columns
    let store = component.coefficients
    return component.masks.withUnsafeMutableBufferPointer { masks in
      for row in 0..<rows {
        for column in 0..<columns {
          guard restarts.next(&bits, walks: walks) else { return Self.ended(bits) }
          let block = store?.block(column: column, row: row)
          let isGood =
            isOfDetails
            ? walks[0].readDetails(&bits, mask: &masks[row * columns + column], into: block)
            : walks[0].readWhole(&bits, into: block)
          guard isGood else { return bits.isPastEnd ? Self.ended(bits) : Self.senseless }
        }
        guard !bits.isPastEnd else { return Self.ended(bits) }
      }
      restarts.skipStrayBytes(&bits, walks: walks)
      return .whole
    }
  }

  /// Returns the verdict on data that ends early: at the end of the file it is truncated, at a
  /// marker damaged.
  private static func ended(_ bits: JPEGBits) -> JPEGVerdict {
    bits.isAtFileEnd
      ? .damaged(.truncated, "a JPEG's data ends with the file")
      : .damaged(.warning, "a JPEG's data ends before its blocks do")
  }
}

/// Tracks where restart markers are due (T.81, E.1.4).
struct JPEGRestarts {
  private let interval: Int
  /// The blocks of each member in a unit.
  private let counts: [Int]
  private let isOfDetails: Bool
  private var done = 0
  private var count = 0

  /// The stray bytes that are accepted with any value: too few to tell them from codes. Most bytes
  /// are valid codes in a progressive scan.
  private let fewBytes: Int
  /// The most stray bytes that are no fill. More are the rest of damaged data.
  private static let mostBytes = 64

  init(interval: Int, counts: [Int], of places: ClosedRange<Int>) {
    self.interval = interval
    fewBytes = places == 0...63 ? 2 : 16
    self.counts = counts
    isOfDetails = places.lowerBound > 0
  }

  /// Moves to the next unit, past a restart marker if one is due; returns false if the marker is
  /// missing.
  @inline(__always)
  mutating func next(
    _ bits: inout JPEGBits, walks: UnsafeMutableBufferPointer<JPEGBlockWalk>
  ) -> Bool {
    if interval > 0 && done == interval {
      guard restart(&bits, walks: walks) else { return false }
    }
    done += 1
    return true
  }

  @inline(never)
  private mutating func restart(
    _ bits: inout JPEGBits, walks: UnsafeMutableBufferPointer<JPEGBlockWalk>
  ) -> Bool {
    let marker = 0xd0 + UInt8(count % 8)
    if !bits.pass(marker) {
      skipStrayBytes(&bits, walks: walks)
      guard bits.pass(marker) else { return false }
    }
    done = 0
    count += 1
    for index in walks.indices { walks[index].restart() }
    return true
  }

  /// Moves to the next marker if the bytes before it belong to no pixel: cameras pad so, and
  /// libjpeg skips them.
  ///
  /// Bytes that read as further units are the end of data that lost its place: they stay, and are
  /// damage.
  func skipStrayBytes(
    _ bits: inout JPEGBits, walks: UnsafeMutableBufferPointer<JPEGBlockWalk>
  ) {
    guard let stray = bits.bytesBeforeMarker, !stray.isEmpty else { return }
    let isStray =
      stray.count <= fewBytes || bits.isFill(stray)
      || stray.count <= Self.mostBytes && !holdsUnits(bits, walks: Array(walks))
    if isStray { bits.move(to: stray.upperBound) }
  }

  /// Whether whole units fill the data up to the next marker.
  private func holdsUnits(_ bits: JPEGBits, walks: [JPEGBlockWalk]) -> Bool {
    var bits = bits
    var walks = walks
    while !bits.isPastEnd {
      for index in walks.indices {
        for _ in 0..<counts[index] {
          var mask: UInt64 = 0
          let isGood =
            isOfDetails
            ? walks[index].readDetails(&bits, mask: &mask, into: nil)
            : walks[index].readWhole(&bits)
          guard isGood, !bits.isPastEnd else { return false }
        }
      }
      if bits.hasOnlyPadding { return true }
    }
    return false
  }
}
