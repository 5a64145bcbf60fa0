// ByteSearch: which quality and which size are tried next, until a result has no more bytes than it may.

import Glibc
import Model

/// Looks for the best quality at which a result fits, and where none does, for a size near the largest. Pure: told how
/// many bytes each attempt made, it says what to attempt next.
struct ByteSearch {
  /// What is encoded.
  struct Attempt: Equatable {
    /// `nil` for a format without one.
    let quality: Int?
    let size: PixelSize
  }

  /// A value that was tried, a quality or a number of pixels, and the bytes that it made.
  private struct Sample {
    let value: Double
    let bytes: Int
  }

  /// The most attempts: at the wanted quality, at the least, and six in between, which tell 64 qualities apart even where
  /// guesses from the bytes do not help.
  static let mostAttempts = 8
  /// A size is good enough when it makes so much of the bytes that it may.
  private static let enough = 0.9

  private let limit: Int
  private let full: PixelSize
  /// From the least to the one wanted; `nil` for a format without one.
  private let qualities: ClosedRange<Int>?
  private var attempts = 0
  private var current: Attempt?
  /// Whether it is the size that changes; else it is the quality.
  private var isResizing: Bool
  /// The greatest value that fits.
  private var fitting: Sample?
  /// The last and the one before of those that do not, the least and the second.
  private var exceeding: [Sample] = []
  private var fewestBytes = Int.max

  /// Starts.
  ///
  /// - Parameters:
  ///   - limit: The most bytes, at least 1.
  ///   - qualities: The least quality that is tried before the size gives way, and the best; `nil` for a format without.
  ///   - size: The largest size.
  init(limit: Int, qualities: ClosedRange<Int>?, size: PixelSize) {
    self.limit = limit
    self.qualities = qualities
    full = size
    isResizing = qualities == nil
  }

  /// What to try next; `nil` when there is nothing left to gain, or it has been enough.
  mutating func next() -> Attempt? {
    guard attempts < Self.mostAttempts else { return nil }
    if !isResizing, let qualities {
      current = nextQuality(in: qualities).map { Attempt(quality: $0, size: full) }
    } else {
      current = nextSize().map { Attempt(quality: qualities?.lowerBound, size: $0) }
    }
    attempts += 1
    return current
  }

  /// Takes note of how many bytes the attempt made.
  ///
  /// - Returns: Whether it is the best so far. What fits is better than all before, since only better is tried then; until
  ///   something does, the smallest is.
  mutating func record(bytes: Int) -> Bool {
    guard let current else { return false }
    let isSmallest = bytes <= fewestBytes
    fewestBytes = min(fewestBytes, bytes)
    if bytes <= limit {
      fitting = Sample(value: value(of: current), bytes: bytes)
      return true
    }
    if !isResizing, current.quality == qualities?.lowerBound {
      isResizing = true
      exceeding = []
    }
    exceeding = [Sample(value: value(of: current), bytes: bytes)] + exceeding.prefix(1)
    return fitting == nil && isSmallest
  }

  private func value(of attempt: Attempt) -> Double {
    isResizing ? Double(attempt.size.pixels) : Double(attempt.quality ?? 0)
  }

  /// The best, then the least, then whatever lies where the bytes should be right if they grow by the same factor from each
  /// quality to the next.
  private func nextQuality(in range: ClosedRange<Int>) -> Int? {
    guard let above = exceeding.first else { return fitting == nil ? range.upperBound : nil }
    guard let below = fitting else { return range.lowerBound }
    let (low, high) = (Int(below.value), Int(above.value))
    guard high - low > 1 else { return nil }
    let part = log(ratio(limit, below.bytes)) / log(ratio(above.bytes, below.bytes))
    // Never close to an end that is far away: a guess that is wrong again and again takes half of the rest at most times.
    let margin = max(1, (high - low) / 8)
    return min(max(low + Int(Double(high - low) * part), low + margin), high - margin)
  }

  /// The whole, then whatever lies where the bytes should be right if they grow by the same number from each pixel to the
  /// next; last, where nothing has fitted, a single pixel.
  private func nextSize() -> PixelSize? {
    guard let above = exceeding.first else { return fitting == nil ? full : nil }
    guard above.value > 1 else { return nil }
    let target = Double(limit) * (1 + Self.enough) / 2
    var pixels: Double
    if let below = fitting {
      guard Double(below.bytes) < Double(limit) * Self.enough else { return nil }
      let part = (target - Double(below.bytes)) / Double(above.bytes - below.bytes)
      pixels = below.value + (above.value - below.value) * part
    } else if attempts == Self.mostAttempts - 1 {
      pixels = 1
    } else if exceeding.count > 1, exceeding[1].bytes > above.bytes {
      // What two sizes have in common, a header for the most part, no smaller size takes away.
      let perPixel = Double(exceeding[1].bytes - above.bytes) / (exceeding[1].value - above.value)
      pixels = min(above.value - (Double(above.bytes) - target) / perPixel, above.value * 0.9)
    } else {
      pixels = above.value * target / Double(above.bytes)
    }
    pixels = max(1, pixels)
    let size = full.scaled(by: (pixels / Double(full.pixels)).squareRoot())
    let isNew =
      Double(size.pixels) < above.value && fitting.map { Double(size.pixels) > $0.value } ?? true
    return isNew ? size : fitting == nil ? PixelSize(width: 1, height: 1) : nil
  }

  private func ratio(_ left: Int, _ right: Int) -> Double { Double(left) / Double(max(1, right)) }
}

extension PixelSize {
  /// Both sides times a factor of at most 1, rounded down, at least 1.
  fileprivate func scaled(by factor: Double) -> PixelSize {
    PixelSize(
      width: max(1, Int(Double(width) * factor)), height: max(1, Int(Double(height) * factor)))
  }
}
