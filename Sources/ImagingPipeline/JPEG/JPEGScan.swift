// JPEGScan: one scan of a JPEG, walked over code by code.

/// Goes over the blocks of a scan and counts their bits; of what they say only the means are computed.
struct JPEGScan {
  let header: JPEGScanHeader
  /// Units between two restarts; 0: there are none.
  let restartInterval: Int
  /// What the mean of a block is multiplied by, for each member.
  let quantizers: [Int]

  /// How far from 0 a block's mean may be, multiplied: twice what 8 bits a band come to (T.81, A.3.3).
  private static let mostMean = 2_048
  /// The most bits that a number of 8 bits a band comes to, and one more for encoders that round up.
  private static let mostBits = (mean: 12, detail: 11)

  private static let senseless = Soundness.damaged(.warning, "a JPEG's codes make no sense")

  /// Reads the scan from its first bit to the last of its last block.
  func read(
    _ bits: inout JPEGBits, _ frame: JPEGScanFrame, _ tables: inout JPEGCodeTables
  ) -> Soundness {
    var walks: [JPEGBlockWalk] = []
    for (member, quantizer) in zip(header.members, quantizers) {
      let needsMeans = header.places.lowerBound == 0 && !header.isRefinement
      let needsDetails = header.places.upperBound > 0
      let dc = needsMeans ? tables.table(member.dc) : nil
      let ac = needsDetails ? tables.table(4 + member.ac) : nil
      // libjpeg has tables of its own for who leaves them out.
      guard (dc != nil) == needsMeans, (ac != nil) == needsDetails else { return .unknown }
      walks.append(
        JPEGBlockWalk(
          dc: dc, ac: ac, header: header, isProgressive: frame.isProgressive,
          mostMean: max(max(Self.mostMean / max(quantizer, 1), 2) >> header.lowBit, 1),
          mostBits: Self.mostBits))
    }
    guard walks.count > 1 else {
      return walks.withUnsafeMutableBufferPointer { walks in
        readOne(&bits, walks, &frame.components[header.members[0].component])
      }
    }
    // T.81, A.2.3: units with blocks of each component.
    let counts = header.members.map { member in
      let own = frame.components[member.component].inUnit
      return own.across * own.down
    }
    guard counts.reduce(0, +) <= 10 else { return .unknown }
    let units = frame.units
    return walks.withUnsafeMutableBufferPointer { walks in
      readUnits(&bits, walks, counts, units)
    }
  }

  private func readUnits(
    _ bits: inout JPEGBits, _ walks: UnsafeMutableBufferPointer<JPEGBlockWalk>, _ counts: [Int],
    _ units: (across: Int, down: Int)
  ) -> Soundness {
    var restarts = Restarts(interval: restartInterval)
    for _ in 0..<units.down {
      for _ in 0..<units.across {
        guard restarts.next(&bits, walks) else { return Self.ended(bits) }
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
    return .whole
  }

  /// A component by itself: its own blocks, row by row.
  private func readOne(
    _ bits: inout JPEGBits, _ walks: UnsafeMutableBufferPointer<JPEGBlockWalk>,
    _ component: inout JPEGScanFrame.Component
  ) -> Soundness {
    var restarts = Restarts(interval: restartInterval)
    let isOfDetails = header.places.lowerBound > 0
    let (rows, columns) = (component.rows, component.columns)
    return component.masks.withUnsafeMutableBufferPointer { masks in
      for row in 0..<rows {
        for column in 0..<columns {
          guard restarts.next(&bits, walks) else { return Self.ended(bits) }
          let isGood =
            isOfDetails
            ? walks[0].readDetails(&bits, &masks[row * columns + column])
            : walks[0].readWhole(&bits)
          guard isGood else { return bits.isPastEnd ? Self.ended(bits) : Self.senseless }
        }
        guard !bits.isPastEnd else { return Self.ended(bits) }
      }
      return .whole
    }
  }

  /// Data that ends with the file was cut off; data that ends at a marker is damaged.
  private static func ended(_ bits: JPEGBits) -> Soundness {
    bits.isAtFileEnd
      ? .damaged(.truncated, "a JPEG's data ends with the file")
      : .damaged(.warning, "a JPEG's data ends before its blocks do")
  }
}

/// Where restart markers stand (T.81, E.1.4).
private struct Restarts {
  let interval: Int
  private var (done, count) = (0, 0)

  init(interval: Int) { self.interval = interval }

  /// Goes on to the next unit, behind a marker where one is due; tells whether it is there.
  @inline(__always)
  mutating func next(
    _ bits: inout JPEGBits, _ walks: UnsafeMutableBufferPointer<JPEGBlockWalk>
  ) -> Bool {
    if interval > 0 && done == interval {
      guard bits.pass(0xd0 + UInt8(count % 8)) else { return false }
      (done, count) = (0, count + 1)
      for index in walks.indices { walks[index].restart() }
    }
    done += 1
    return true
  }
}
