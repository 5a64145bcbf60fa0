// ByteLimit: encodes a result repeatedly until it fits into a byte limit (`maxbytes`).

import CVips
import Core
import Glibc

/// The bytes of a result, with the size and quality that a byte limit required.
struct Encoded: ~Copyable {
  let bytes: GLibBytes
  /// The size of one frame.
  let size: PixelSize
  /// The quality that `maxbytes` required; `nil` without a limit, and for a format without quality.
  let quality: Int?
}

extension Output {
  /// The lowest quality tried before the size is reduced. At equal bytes, a smaller JPEG has the
  /// likeness of one of quality 10 (25.1 dB), and more than one of 5 (23.4 and 22.6 dB).
  private var leastQuality: Int { format == .avif ? 20 : 10 }

  /// Encodes the image within `limit` bytes. If no attempt fits, returns the smallest one, usually
  /// a single pixel.
  ///
  /// - Parameter image: The image; with a limit it must be in memory, because it is read up to
  ///   `ByteSearch.maximumAttempts` times.
  func encode(
    _ image: borrowing Image, within limit: Int?, notes: borrowing OutputMetadata
  ) throws(ImageError) -> Encoded {
    guard let limit else {
      return Encoded(
        bytes: try encode(image), size: notes.frameSize(of: image), quality: nil)
    }
    guard let best = try fitted(image, within: limit, notes: notes, resizes: true) else {
      throw .internal(detail: "no encode within \(limit) bytes")
    }
    return best
  }

  /// Encodes the image with no more bytes than its source, at the highest quality that fits; `nil`
  /// if no quality fits.
  ///
  /// - Parameter image: The image, in memory.
  func encode(
    _ image: borrowing Image, inPlaceOf limit: Int, notes: borrowing OutputMetadata
  ) throws(ImageError) -> Encoded? {
    guard quality != nil,
      let best = try fitted(image, within: limit, notes: notes, resizes: false),
      best.bytes.count <= limit
    else { return nil }
    return best
  }

  /// Returns the best attempt of a search.
  private func fitted(
    _ image: borrowing Image, within limit: Int, notes: borrowing OutputMetadata, resizes: Bool
  ) throws(ImageError) -> Encoded? {
    let size = notes.frameSize(of: image)
    let qualities = quality.map { min($0, leastQuality)...$0 }
    var search = ByteSearch(limit: limit, qualities: qualities, size: size)
    var best: Encoded?
    while let attempt = search.next(), resizes || attempt.size == size {
      let bytes =
        attempt.size == size
        ? try encode(image, quality: attempt.quality)
        : try encode(try notes.resized(image, to: attempt.size), quality: attempt.quality)
      if search.record(bytes: bytes.count) {
        best = Encoded(bytes: bytes, size: attempt.size, quality: attempt.quality)
      }
    }
    return best
  }
}

/// Searches for the highest quality that fits, and if none fits, for a size close to the largest
/// that fits. A pure state machine: given the bytes of each attempt, it returns the next attempt.
struct ByteSearch {
  /// The parameters of one encoding.
  struct Attempt: Equatable {
    /// The quality; `nil` for a format without quality.
    let quality: Int?
    let size: PixelSize
  }

  /// A tried value, a quality or a pixel count, and the resulting bytes.
  private struct Sample {
    let value: Double
    let bytes: Int
  }

  /// The maximum number of attempts: the requested quality, the lowest, and six in between. Six
  /// bisections distinguish 64 qualities even if estimates fail.
  static let maximumAttempts = 8
  /// A size is accepted if its bytes reach this fraction of the limit.
  private static let enough = 0.9

  private let limit: Int
  private let full: PixelSize
  /// The range from the lowest to the requested quality; `nil` for a format without quality.
  private let qualities: ClosedRange<Int>?
  private var attempts = 0
  private var current: Attempt?
  /// Whether the search varies the size instead of the quality.
  private var isResizing: Bool
  /// The greatest value that fits.
  private var fitting: Sample?
  /// The smallest value that exceeds the limit, then the one found before it.
  private var exceeding: [Sample] = []
  private var fewestBytes = Int.max

  /// Starts a search.
  ///
  /// - Parameters:
  ///   - limit: The maximum bytes, at least 1.
  ///   - qualities: The range from the lowest quality before the size is reduced to the highest;
  ///     `nil` for a format without quality.
  init(limit: Int, qualities: ClosedRange<Int>?, size: PixelSize) {
    self.limit = limit
    self.qualities = qualities
    full = size
    isResizing = qualities == nil
  }

  /// Returns the next attempt; `nil` if no improvement is possible or the attempts are used up.
  mutating func next() -> Attempt? {
    guard attempts < Self.maximumAttempts else { return nil }
    if !isResizing, let qualities {
      current = nextQuality(in: qualities).map { Attempt(quality: $0, size: full) }
    } else {
      current = nextSize().map { Attempt(quality: qualities?.lowerBound, size: $0) }
    }
    attempts += 1
    return current
  }

  /// Records the bytes of the current attempt.
  ///
  /// - Returns: Whether the attempt is the best so far. Each fitting attempt is better than all
  ///   before; until one fits, the smallest is best.
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

  /// Returns the highest quality, then the lowest, then estimates that assume exponential growth of
  /// the bytes with quality.
  private func nextQuality(in range: ClosedRange<Int>) -> Int? {
    guard let above = exceeding.first else { return fitting == nil ? range.upperBound : nil }
    guard let below = fitting else { return range.lowerBound }
    let low = Int(below.value)
    let high = Int(above.value)
    guard high - low > 1 else { return nil }
    let part = log(ratio(of: limit, to: below.bytes)) / log(ratio(of: above.bytes, to: below.bytes))
    // Keeps a distance from both ends, so that repeated wrong estimates still shrink the range.
    let margin = max(1, (high - low) / 8)
    return min(max(low + Int(Double(high - low) * part), low + margin), high - margin)
  }

  /// Returns the full size, then estimates that assume linear growth of the bytes with pixels. If
  /// nothing has fitted, the last attempt is a single pixel.
  private func nextSize() -> PixelSize? {
    guard let above = exceeding.first else { return fitting == nil ? full : nil }
    guard above.value > 1 else { return nil }
    let target = Double(limit) * (1 + Self.enough) / 2
    var pixels: Double
    if let below = fitting {
      guard Double(below.bytes) < Double(limit) * Self.enough else { return nil }
      let part = (target - Double(below.bytes)) / Double(above.bytes - below.bytes)
      pixels = below.value + (above.value - below.value) * part
    } else if attempts == Self.maximumAttempts - 1 {
      pixels = 1
    } else if exceeding.count > 1, exceeding[1].bytes > above.bytes {
      // The constant part of two sizes, mostly a header, remains at every smaller size.
      let perPixel = Double(exceeding[1].bytes - above.bytes) / (exceeding[1].value - above.value)
      pixels = min(above.value - (Double(above.bytes) - target) / perPixel, above.value * 0.9)
    } else {
      pixels = above.value * target / Double(above.bytes)
    }
    pixels = max(1, pixels)
    let size = full.scaledDown(by: (pixels / Double(full.pixels)).squareRoot())
    let isNew =
      Double(size.pixels) < above.value && fitting.map { Double(size.pixels) > $0.value } ?? true
    return isNew ? size : fitting == nil ? PixelSize(width: 1, height: 1) : nil
  }

  private func ratio(of left: Int, to right: Int) -> Double { Double(left) / Double(max(1, right)) }
}
