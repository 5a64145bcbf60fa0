// SourceCost: limits the decoding cost of a source where its size does not, based on its structure.

import Core
import Glibc

/// Work that neither pixels nor bytes limit: counted, and limited.
struct SourceCost {
  /// The scans of a JPEG.
  private(set) var scans = 1
  /// What a vector holds; `nil` for other formats.
  private(set) var vector: VectorLimits?

  /// The maximum number of pixels in all scans of a JPEG together: 2 s of processor time
  /// (docs/performance.md, "Limits of processor time"). Encoders write 3 to 12 scans.
  private static let maximumScannedPixels = 7_000_000_000
  /// The maximum number of a JPEG's segments. libjpeg walks through the list of all that it keeps
  /// for each new one: 10,000 take 0.25 s, 50,000 take 7.1 s.
  static let maximumSegments = 5_000
  /// The maximum number of chunks, blocks or boxes of other formats. Libraries take up to a
  /// microsecond for each.
  static let maximumParts = 100_000

  /// Checks a source before it is decoded.
  ///
  /// - Throws: `ImageError.tooCostly`; for a vector `.tooManyPixels`, too.
  static func check(
    _ source: UnsafeRawBufferPointer, header: SourceHeader, limits: ImagingLimits
  ) throws(ImageError) -> SourceCost {
    var cost = SourceCost()
    if header.format == .svg { cost.vector = try VectorLimits(checking: source, limits: limits) }
    guard header.format == .jpeg else { return cost }
    let counts = counts(of: source)
    guard counts.segments <= maximumSegments else {
      throw .tooCostly(reason: "a JPEG of more than \(maximumSegments) segments")
    }
    let maximum = max(maximumScannedPixels / max(header.size.pixels, 1), 1)
    guard counts.scans <= maximum else {
      throw .tooCostly(
        reason: "\(counts.scans) scans of \(header.size); at most \(maximum) are decoded")
    }
    cost.scans = counts.scans
    return cost
  }

  /// Estimates the decoding of the source.
  ///
  /// - Parameters:
  ///   - frames: How many frames of an animation are decoded.
  ///   - share: The share of the pixels that the decoder makes; 0 for what every transform takes.
  func cost(
    of source: UnsafeRawBufferPointer, _ header: SourceHeader, frames: Int, share: Double = 1
  ) -> JobCost {
    var cost = JobCost(decoding: source, header, frames: frames, scans: scans, share: share)
    if let vector { cost.seconds += 10e-9 * Double(vector.embeddedPixels) }
    return cost
  }

  /// Returns the scans of a JPEG, at least 1, and its segments, up to its end marker. Within coded
  /// data each 0xff is followed by 0 or a restart marker (ISO/IEC 10918-1, B.1.1.5).
  static func counts(of source: UnsafeRawBufferPointer) -> (scans: Int, segments: Int) {
    guard let start = source.baseAddress else { return (1, 0) }
    var scans = 0
    var segments = 0
    var markers = JPEGMarkers(source)
    while markers.position + 1 < source.count,
      let found = memchr(
        start + markers.position, 0xff, source.count - markers.position - 1)
    {
      markers.position = UnsafeRawPointer(found) - start
      guard let marker = try? markers.next() else {
        markers.position += 1
        continue
      }
      if marker == 0xd9 { break }
      guard marker != 0x01, !(0xd0...0xd8).contains(marker) else { continue }
      segments += 1
      if marker == 0xda { scans += 1 }
      _ = try? markers.segment()
    }
    return (max(scans, 1), segments)
  }
}
