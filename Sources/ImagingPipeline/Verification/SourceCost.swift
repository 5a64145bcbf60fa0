// SourceCost: limits the decoding cost of a source where its size does not, based on its structure.

import Glibc
import ImagingWire
import Model

/// Limits for work that neither pixels nor bytes limit.
enum SourceCost {
  /// The maximum number of pixels in all scans of a JPEG together: 2 s of processor time (docs/performance.md,
  /// "Limits of processor time"). Encoders write 3 to 12 scans.
  private static let maximumScannedPixels = 7_000_000_000

  /// Checks a source before it is decoded. The cost of a vector depends on its drawn size
  /// (`VectorCost`), except for the images in it.
  ///
  /// - Throws: `ImageError.tooCostly`; for a vector `.tooManyPixels`, too.
  static func check(
    _ source: UnsafeRawBufferPointer, header: SourceHeader, limits: ImagingLimits
  ) throws(ImageError) {
    if header.format == .svg { try VectorImages.check(source, limits: limits) }
    guard header.format == .jpeg else { return }
    let scans = scans(of: source)
    let maximum = max(maximumScannedPixels / max(header.size.pixels, 1), 1)
    guard scans <= maximum else {
      throw .tooCostly(reason: "\(scans) scans of \(header.size); at most \(maximum) are decoded")
    }
  }

  /// Returns the number of scans of a JPEG, counted from the first. Within coded data each 0xff is
  /// followed by 0 (ISO/IEC 10918-1, B.1.1.5), so every 0xff 0xda starts a scan.
  static func scans(of source: UnsafeRawBufferPointer) -> Int {
    var markers = JPEGMarkers(source)
    while let (marker, _) = markers.nextSegment() {
      if marker == 0xda { break }
    }
    guard let start = source.baseAddress else { return 0 }
    var count = 1
    var place = min(markers.position, source.count)
    while place + 1 < source.count,
      let found = memchr(start + place, 0xff, source.count - place - 1)
    {
      place = UnsafeRawPointer(found) - start + 1
      if source[place] == 0xda { count += 1 }
    }
    return count
  }
}
