// JPEGBlockWalk: walks over the codes of a JPEG's blocks, sequential or progressive.

/// Walks over the blocks of one component in one scan.
struct JPEGBlockWalk {
  private let dc: JPEGCodeTable?
  private let ac: JPEGCodeTable?
  private let isProgressive: Bool
  private let isRefinement: Bool
  private let first: Int
  private let last: Int
  /// The lowest bit of this scan, which a refinement adds.
  private let lowBit: Int16
  /// The first coefficients of a block that are stored; 0 if only codes are checked.
  private let kept: Int
  private let maximumMean: Int
  private let maximumBits: (mean: Int, detail: Int)
  private var mean = 0
  /// The number of following blocks without a code of their own (T.81, G.1.2.2).
  private var emptyBlocks = 0

  init(
    dc: JPEGCodeTable?, ac: JPEGCodeTable?, header: JPEGScanHeader, isProgressive: Bool,
    kept: Int, maximumMean: Int, maximumBits: (mean: Int, detail: Int)
  ) {
    self.dc = dc
    self.ac = ac
    self.isProgressive = isProgressive
    isRefinement = header.isRefinement
    first = header.places.lowerBound
    last = header.places.upperBound
    lowBit = Int16(header.lowBit)
    self.kept = kept
    self.maximumMean = maximumMean
    self.maximumBits = maximumBits
  }

  /// Resets the state after a restart marker.
  mutating func restart() {
    mean = 0
    emptyBlocks = 0
  }

  /// Reads a block that starts with its DC coefficient: the whole block, or only the DC coefficient
  /// in a progressive scan.
  ///
  /// - Parameter block: Receives the DC coefficient of a progressive scan; `nil` if only codes are
  ///   checked.
  /// - Returns: Whether the codes are valid.
  @inline(__always)
  mutating func readWhole(
    _ bits: inout JPEGBits, into block: UnsafeMutablePointer<Int16>? = nil
  ) -> Bool {
    bits.refill()
    if isRefinement {
      if let block { block[0] |= Int16(bits.peek(1)) &<< lowBit }
      bits.skip(1)
      return true
    }
    guard let dc else { return false }
    let size = Self.symbol(&bits, table: dc)
    guard size >= 0, size <= maximumBits.mean else { return false }
    if size > 0 {
      mean &+= JPEGHuffmanTable.number(bits.peek(size), bits: size)
      bits.skip(size)
      guard abs(mean) <= maximumMean else { return false }
    }
    guard !isProgressive, let ac else {
      if let block { block[0] = Int16(truncatingIfNeeded: mean) &<< lowBit }
      return isProgressive
    }
    return readAllDetails(&bits, ac: ac)
  }

  /// Reads the AC coefficients of a sequential block (T.81, F.2.2.2).
  @inline(__always)
  private func readAllDetails(_ bits: inout JPEGBits, ac: JPEGCodeTable) -> Bool {
    let quick = ac.quick
    // A copy that stays in registers between the few calls that need `bits` itself.
    var window = bits.window
    var place = 1
    while place < 64 {
      if window.count < 32 {
        bits.window = window
        bits.refill()
        window = bits.window
      }
      var entry = Int(quick[Int(truncatingIfNeeded: window.bits &>> Self.quickShift)])
      if entry == 0 {
        entry = ac.entry(for: Int(truncatingIfNeeded: window.bits &>> 48))
        guard entry != 0 else { return false }
      }
      // The code and the number after it have at most 31 bits.
      let run = entry &>> 4 & 15
      let size = entry & 15
      let length = entry &>> 8 &+ size
      window.bits &<<= UInt64(truncatingIfNeeded: length)
      window.count &-= length
      if size > 0 {
        place &+= run &+ 1
        guard place <= 64, size <= maximumBits.detail else { return false }
      } else if run == 15 {
        place &+= 16
      } else {
        break
      }
    }
    bits.window = window
    return place <= 64
  }

  private static let quickShift = UInt64(64 - JPEGCodeTable.quickBits)

  /// Reads a block of a progressive scan of AC coefficients.
  ///
  /// - Parameters:
  ///   - mask: The bit mask of the block's nonzero coefficients.
  ///   - block: Receives the first `kept` coefficients.
  /// - Returns: Whether the codes are valid.
  @inline(__always)
  mutating func readDetails(
    _ bits: inout JPEGBits, mask: inout UInt64, into block: UnsafeMutablePointer<Int16>?
  ) -> Bool {
    guard let ac else { return false }
    return isRefinement
      ? refineDetails(&bits, mask: &mask, ac: ac, into: block)
      : readNewDetails(&bits, mask: &mask, ac: ac, into: block)
  }

  /// Reads the first bits of AC coefficients (T.81, G.1.2.2).
  private mutating func readNewDetails(
    _ bits: inout JPEGBits, mask: inout UInt64, ac: JPEGCodeTable,
    into block: UnsafeMutablePointer<Int16>?
  ) -> Bool {
    if emptyBlocks > 0 {
      emptyBlocks -= 1
      return true
    }
    var place = first
    while place <= last {
      bits.refill()
      let symbol = Self.symbol(&bits, table: ac)
      guard symbol >= 0 else { return false }
      let run = symbol >> 4
      let size = symbol & 15
      if size > 0 {
        place += run
        guard place <= last, size <= maximumBits.detail else { return false }
        if place < kept, let block {
          let number = JPEGHuffmanTable.number(bits.peek(size), bits: size)
          block[place] = Int16(truncatingIfNeeded: number) &<< lowBit
        }
        bits.skip(size)
        mask |= 1 << UInt64(place)
        place += 1
      } else if run == 15 {
        place += 16
      } else {
        emptyBlocks = Self.emptyBlocks(&bits, run: run) - 1
        return true
      }
    }
    return place == last + 1
  }

  /// Reads refinement bits (T.81, G.1.2.3): one bit for each nonzero coefficient, and codes for
  /// coefficients that become nonzero.
  private mutating func refineDetails(
    _ bits: inout JPEGBits, mask: inout UInt64, ac: JPEGCodeTable,
    into block: UnsafeMutablePointer<Int16>?
  ) -> Bool {
    var place = first
    while emptyBlocks == 0 && place <= last {
      bits.refill()
      let symbol = Self.symbol(&bits, table: ac)
      guard symbol >= 0 else { return false }
      var run = symbol >> 4
      let isNew = symbol & 15 != 0
      var isPositive = false
      if isNew {
        guard symbol & 15 == 1 else { return false }
        isPositive = bits.peek(1) == 1
        bits.skip(1)
      } else if run < 15 {
        emptyBlocks = Self.emptyBlocks(&bits, run: run)
        break
      }
      while place <= last {
        if mask >> UInt64(place) & 1 == 1 {
          refine(place, of: block, &bits)
        } else if run == 0 {
          break
        } else {
          run -= 1
        }
        place += 1
      }
      if isNew {
        guard place <= last else { return false }
        mask |= 1 << UInt64(place)
        if place < kept, let block { block[place] = (isPositive ? 1 : -1) &<< lowBit }
      }
      place += 1
    }
    guard emptyBlocks > 0 else { return true }
    emptyBlocks -= 1
    if place <= last {
      var rest = mask & (~0 << UInt64(place)) & (~0 >> UInt64(63 - last))
      while rest.trailingZeroBitCount < kept {
        refine(rest.trailingZeroBitCount, of: block, &bits)
        rest &= rest &- 1
      }
      var count = rest.nonzeroBitCount
      while count > 0 {
        bits.refill()
        bits.skip(min(count, 32))
        count -= min(count, 32)
      }
    }
    return true
  }

  /// Reads the next bit of a nonzero coefficient.
  @inline(__always)
  private func refine(
    _ place: Int, of block: UnsafeMutablePointer<Int16>?, _ bits: inout JPEGBits
  ) {
    bits.refill()
    if place < kept, let block, bits.peek(1) == 1 {
      block[place] &+= (block[place] < 0 ? -1 : 1) &<< lowBit
    }
    bits.skip(1)
  }

  /// Returns the number of blocks, including this one, that an end-of-band code ends (T.81, table
  /// G.1).
  private static func emptyBlocks(_ bits: inout JPEGBits, run: Int) -> Int {
    guard run > 0 else { return 1 }
    bits.refill()
    defer { bits.skip(run) }
    return 1 << run + bits.peek(run)
  }

  /// Reads the symbol of the next code; -1 for an invalid code.
  @inline(__always)
  private static func symbol(_ bits: inout JPEGBits, table: JPEGCodeTable) -> Int {
    let quick = Int(table.quick[bits.peek(JPEGCodeTable.quickBits)])
    let entry = quick != 0 ? quick : table.entry(for: bits.peek(16))
    guard entry != 0 else { return -1 }
    bits.skip(entry >> 8)
    return entry & 255
  }
}
