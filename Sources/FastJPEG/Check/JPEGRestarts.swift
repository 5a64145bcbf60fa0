// JPEGRestarts: where a scan's restart markers are due, and the stray bytes before a marker.

/// Tracks where restart markers are due (T.81, E.1.4).
struct JPEGRestarts {
  private let interval: Int
  /// The blocks of each member in a unit.
  private let counts: [Int]
  private let isOfDetails: Bool
  private var done = 0
  private var count = 0

  /// The stray bytes that are accepted with any value: too few to tell them from codes. Most bytes are valid codes in a
  /// progressive scan.
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

  /// Moves to the next marker if the bytes before it belong to no pixel: cameras pad so, and libjpeg skips them.
  ///
  /// Bytes that read as further units are the end of data that lost its place: they stay, and are damage.
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
