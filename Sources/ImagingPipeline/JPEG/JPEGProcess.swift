// JPEGProcess: detects the coding process of a JPEG: why libjpeg rejects it, and what it holds in
// memory.

import Core

/// The coding process in the frame header (ISO/IEC 10918-1, table B.1 and B.2.2).
struct JPEGProcess {
  /// Bits per sample: 8 or 12; up to 16 for lossless files.
  let precision: Int
  /// The index of the frame marker, 0–15.
  let kind: Int
  /// The size in pixels.
  let size: PixelSize
  /// The bytes of coefficients that libjpeg holds for each pixel: 2 for each sample of a JPEG in
  /// several scans, as the last may change the first pixel; 0 for one in a single scan.
  let coefficientBytes: Double

  /// Finds the frame header; `nil` if there is no frame header.
  init?(of bytes: UnsafeRawBufferPointer) {
    var markers = JPEGMarkers(bytes)
    while let (marker, segment) = markers.nextSegment() {
      // Three markers in this range are not frames: tables, extensions and arithmetic coding
      // conditions.
      guard (0xc0...0xcf).contains(marker), ![0xc4, 0xc8, 0xcc].contains(marker) else { continue }
      // Precision, height, width (B.2.2)
      let fields = segment.prefix(5).map(Int.init)
      guard fields.count == 5 else { return nil }
      precision = fields[0]
      size = PixelSize(width: fields[3] << 8 | fields[4], height: fields[1] << 8 | fields[2])
      kind = Int(marker & 15)
      coefficientBytes = Self.coefficientBytes(of: segment, kind: kind, &markers)
      return
    }
    return nil
  }

  private static func coefficientBytes(
    of frame: some RandomAccessCollection<UInt8>, kind: Int, _ markers: inout JPEGMarkers
  ) -> Double {
    // Precision, height, width, the number of components; of each its name, sampling factors and
    // table (B.2.2).
    let fields = Array(frame)
    guard fields.count > 5, fields.count >= 6 + 3 * Int(fields[5]) else { return 0 }
    let samplings = (0..<Int(fields[5])).map { fields[7 + 3 * $0] }
    var isInterleaved = true
    while let (marker, scan) = markers.nextSegment() {
      guard marker == 0xda else { continue }
      isInterleaved = scan.first.map(Int.init) == samplings.count
      break
    }
    guard [2, 6, 10, 14].contains(kind) || !isInterleaved else { return 0 }
    let areas = samplings.map { Double($0 >> 4) * Double($0 & 15) }
    let widest = samplings.map { Double($0 >> 4) }.max() ?? 1
    let highest = samplings.map { Double($0 & 15) }.max() ?? 1
    return 2 * areas.reduce(0, +) / max(widest * highest, 1)
  }

  /// The reason why Debian's libjpeg does not decode this process; `nil` if it does.
  var refusal: ImageError? {
    if kind == 3 || kind == 11 { return .unsupportedFormat(detail: "a lossless JPEG") }
    if (5...7).contains(kind) || kind >= 13 {
      return .unsupportedFormat(detail: "a hierarchical JPEG")
    }
    return precision == 8
      ? nil : .unsupportedFormat(detail: "a JPEG of \(precision) bits a sample; 8 are decoded")
  }
}
