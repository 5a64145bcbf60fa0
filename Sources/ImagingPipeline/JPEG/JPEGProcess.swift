// JPEGProcess: which of the standard's ways a JPEG is coded in, to say what is wrong with one that libjpeg refuses.

import Model

/// What the frame header says (ISO/IEC 10918-1, table B.1 and B.2.2).
struct JPEGProcess {
  /// Bits a sample: 8, 12, of lossless ones any up to 16.
  let precision: Int
  /// 0–15: the marker's place among the frame markers.
  let kind: Int

  /// Looks for the frame header; `nil` where there is none.
  init?(of bytes: UnsafeRawBufferPointer) {
    var markers = JPEGMarkers(bytes)
    while let (marker, segment) = markers.next() {
      // Among the frame markers are three for tables, extensions and arithmetic coding's conditions.
      guard (0xc0...0xcf).contains(marker), ![0xc4, 0xc8, 0xcc].contains(marker) else { continue }
      guard let first = segment.first else { return nil }
      (precision, kind) = (Int(first), Int(marker & 15))
      return
    }
    return nil
  }

  /// Why Debian's libjpeg does not decode it, whatever its pixels are; `nil` where it could.
  var refusal: ImageError? {
    if kind == 3 || kind == 11 { return .unsupportedFormat(detail: "a lossless JPEG") }
    if (5...7).contains(kind) || kind >= 13 {
      return .unsupportedFormat(detail: "a hierarchical JPEG")
    }
    return precision == 8
      ? nil : .unsupportedFormat(detail: "a JPEG of \(precision) bits a sample; 8 are decoded")
  }
}
