// JPEGProcess: detects the coding process of a JPEG, to explain why libjpeg rejects it.

import Model

/// The coding process in the frame header (ISO/IEC 10918-1, table B.1 and B.2.2).
struct JPEGProcess {
  /// Bits per sample: 8 or 12; up to 16 for lossless files.
  let precision: Int
  /// The index of the frame marker, 0–15.
  let kind: Int

  /// Finds the frame header; `nil` if there is no frame header.
  init?(of bytes: UnsafeRawBufferPointer) {
    var markers = JPEGMarkers(bytes)
    while let (marker, segment) = markers.nextSegment() {
      // Three markers in this range are not frames: tables, extensions and arithmetic coding
      // conditions.
      guard (0xc0...0xcf).contains(marker), ![0xc4, 0xc8, 0xcc].contains(marker) else { continue }
      guard let first = segment.first else { return nil }
      precision = Int(first)
      kind = Int(marker & 15)
      return
    }
    return nil
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
