// JPEGUnitList: the coefficients of successive units, as they are read from the codes.

/// A growing list of units. A unit is a run of words: for each block one with its mean and the number of its other
/// coefficients, then these (`JPEGCoefficient`).
struct JPEGUnitList: ~Copyable {
  /// The memory of all words. Owned; freed by `deinit`.
  private var chunks: [UnsafeMutablePointer<UInt32>] = []
  /// The number of chunks in use; the others are empty.
  private var used = 0
  /// Where the next word is written, and the end of its chunk.
  private var next: UnsafeMutablePointer<UInt32>
  private var end: UnsafeMutablePointer<UInt32>
  /// Where each unit begins.
  private var starts: [UnsafeMutablePointer<UInt32>] = []

  /// Many units of the highest number of words.
  private static let chunkWords = 1 << 15

  init() {
    next = .allocate(capacity: Self.chunkWords)
    end = next + Self.chunkWords
    chunks.append(next)
    used = 1
  }

  deinit { for chunk in chunks { chunk.deallocate() } }

  /// The number of units.
  var count: Int { starts.count }

  /// Returns the first word of a unit.
  func words(of unit: Int) -> UnsafePointer<UInt32> { UnsafePointer(starts[unit]) }

  /// Begins a unit, whose blocks are then added.
  ///
  /// - Parameter most: The maximum number of its words, at most some hundreds.
  /// - Returns: The unit, for `end`.
  mutating func begin(atMost most: Int) -> UnsafeMutablePointer<UInt32> {
    if end - next < most {
      if used == chunks.count { chunks.append(.allocate(capacity: Self.chunkWords)) }
      next = chunks[used]
      end = next + Self.chunkWords
      used += 1
    }
    return next
  }

  /// Ends a unit.
  ///
  /// - Parameters:
  ///   - unit: What `begin` returned.
  ///   - isWhole: Whether it counts.
  mutating func end(_ unit: UnsafeMutablePointer<UInt32>, isWhole: Bool) {
    if isWhole { starts.append(unit) } else { next = unit }
  }

  /// Removes all units.
  mutating func removeAll() {
    starts.removeAll(keepingCapacity: true)
    used = 1
    next = chunks[0]
    end = next + Self.chunkWords
  }

  /// Where the coefficients of the next block are written, before `append`.
  var coefficients: UnsafeMutablePointer<UInt32> { next + 1 }

  /// Adds a block, whose coefficients have been written.
  @inline(__always)
  mutating func append(mean: Int, coefficients count: Int) {
    next.pointee = UInt32(count) &<< 16 | UInt32(UInt16(truncatingIfNeeded: mean))
    next += 1 &+ count
  }

  /// Returns the mean of a block and the number of its coefficients, which follow.
  @inline(__always)
  static func block(_ word: UInt32) -> (mean: Int, coefficients: Int) {
    (Int(Int16(truncatingIfNeeded: word)), Int(word &>> 16))
  }
}
