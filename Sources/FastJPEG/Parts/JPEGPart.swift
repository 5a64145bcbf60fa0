// JPEGPart: reads the codes of one part of a JPEG, from any byte on.

import Synchronization

/// A part of the codes, read by one thread.
///
/// All parts but the first begin at some byte, in the middle of a code as a rule. They read as if a unit began there: Huffman
/// codes soon fall into step with the real ones (S. T. Klein, Y. Wiseman: Parallel Huffman decoding with applications to JPEG
/// files, 2003). The part before reads on until it begins a unit where this one does too. From there on both would read
/// the same, except for the means, which are differences: this part's are relative.
final class JPEGPart: @unchecked Sendable {
  // Sound as Sendable: one thread reads a part. Until it has ended, others look only at `places` and `firstMeans`, which
  // no longer change once `isPublished`.

  /// The offset in the file of the first byte.
  let start: Int
  /// The unit of the next part that begins where this part ended; `nil` if it did not get there.
  private(set) var joint: Int?
  /// Whether a code is invalid. The units before are whole.
  private(set) var hasFailed = false

  /// Owned; freed by `deinit`. A pointer, because the hot loop would check each access to a property of a class.
  private let reader: UnsafeMutablePointer<JPEGUnitReader>
  private let source: UnsafeRawBufferPointer
  private let bands: Int
  private let isFirst: Bool
  private let hasRestarts: Bool

  /// Where the first units begin (`JPEGBits.place`), ascending.
  private var places: [Int] = []
  /// The means of all components before each of them.
  private var firstMeans: [SIMD4<Int>] = []
  private let isPublished = Atomic<Bool>(false)
  private let isStopped = Atomic<Bool>(false)

  /// The units that another part is compared with.
  private static let comparedUnits = 2_048
  /// The most that a relative mean differs from that of the first compared unit, and the most of all. Absolute means are
  /// within `JPEGComponentDecoder.highestMean`.
  private static let highestRelative = (first: 1 << 13, all: 1 << 14)

  /// Prepares reading.
  ///
  /// - Parameters:
  ///   - start: The offset of the first byte (`firstByte`). With restarts, the byte after a restart marker.
  ///   - restart: The number of the next restart, modulo 8.
  ///   - isFirst: Whether the codes of the file begin here.
  /// - Returns: `nil` beyond the end of the file.
  init?(
    _ source: UnsafeRawBufferPointer, at start: Int, frame: JPEGFrame, bases: [JPEGBasis],
    restart: UInt8, isFirst: Bool
  ) {
    guard let bits = JPEGBits(source, at: start) else { return nil }
    self.source = source
    self.start = start
    self.isFirst = isFirst
    bands = frame.components.count
    hasRestarts = frame.restartInterval > 0
    reader = .allocate(capacity: 1)
    reader.initialize(
      to: JPEGUnitReader(
        bits, frame: frame, bases: bases, restart: restart,
        highestMean: isFirst ? JPEGComponentDecoder.highestMean : Self.highestRelative.all))
  }

  deinit {
    reader.deinitialize(count: 1)
    reader.deallocate()
  }

  /// Returns `place`, or the byte after it if a stuffed zero is there, which has no codes (T.81, F.1.2.3).
  static func firstByte(from place: Int, in source: UnsafeRawBufferPointer) -> Int {
    place > 0 && place < source.count && source[place - 1] == 0xff && source[place] == 0
      ? place + 1 : place
  }

  /// The number of units.
  var count: Int { reader.pointee.units.count }
  /// The mean of each component after the last unit, relative to that before the first.
  var means: SIMD4<Int> { reader.pointee.means }

  /// Returns the words of a unit.
  func words(of unit: Int) -> UnsafePointer<UInt32> {
    reader.pointee.units.words(of: unit)
  }

  /// Whether the end marker follows the last unit, without a restart between them.
  func isFollowedByEnd() -> Bool {
    !hasFailed && reader.pointee.isAfterUnit && reader.pointee.bits.pass(0xd9)
  }

  /// Returns the relative means before one of the first units.
  func means(before unit: Int) -> SIMD4<Int> { firstMeans[unit] }

  /// Ends reading soon: another thread has found that this part is not needed.
  private func stop() { isStopped.store(true, ordering: .relaxed) }

  /// Reads until the next part is met, the codes end, or there are `limit` units.
  func read(limit: Int, next: JPEGPart?) {
    defer {
      publish()
      if joint == nil { next?.stop() }
    }
    var compared = 0
    while count < limit {
      guard !isStopped.load(ordering: .relaxed) else { return }
      if reader.pointee.isRestartDue {
        guard reader.pointee.passRestart() else { return }
      }
      if let next, let unit = next.unit(beginningAt: reader.pointee.bits, since: &compared) {
        joint = unit
        return
      }
      if !isFirst && reader.pointee.bits.end != nil { return }
      let isCompared = !isFirst && places.count < Self.comparedUnits
      if isCompared {
        places.append(reader.pointee.bits.place)
        firstMeans.append(means)
      }
      guard reader.pointee.readUnit() else {
        guard isCompared, !hasRestarts, beginAgain() else { return hasFailed = true }
        continue
      }
      if isCompared && places.count == Self.comparedUnits { publish() }
    }
  }

  /// Continues after `read` has returned, up to `limit` units. Returns whether the part has that many.
  func resume(limit: Int) -> Bool {
    while count < limit {
      guard !hasFailed else { return false }
      if reader.pointee.isRestartDue {
        guard reader.pointee.passRestart() else { return false }
      }
      hasFailed = !reader.pointee.readUnit()
    }
    return count == limit
  }

  /// Begins again at the byte after an invalid code, which shows that the codes were not in step. Returns `false` at the end
  /// of the file.
  private func beginAgain() -> Bool {
    let begin = Self.firstByte(from: (places.last ?? 8 * start) / 8 + 1, in: source)
    guard let bits = JPEGBits(source, at: begin) else { return false }
    reader.pointee.beginAgain(at: bits)
    places.removeAll(keepingCapacity: true)
    firstMeans.removeAll(keepingCapacity: true)
    return true
  }

  private func publish() { isPublished.store(true, ordering: .releasing) }

  /// Returns the unit that begins where another part is.
  ///
  /// - Parameter compared: The units that begin before the other part's last place.
  private func unit(beginningAt other: JPEGBits, since compared: inout Int) -> Int? {
    guard other.isAtLeast(start), isPublished.load(ordering: .acquiring) else { return nil }
    let place = other.place
    while compared < places.count && places[compared] < place { compared += 1 }
    guard compared < places.count, places[compared] == place else { return nil }
    // Higher means are not of codes in step.
    let means = firstMeans[compared]
    let isReal = (0..<bands).allSatisfy { abs(means[$0]) <= Self.highestRelative.first }
    return isReal ? compared : nil
  }
}
