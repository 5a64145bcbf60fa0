// HEIFContainer: reads the colour description of a HEIC or AVIF, which libvips does not expose.

import Platform

/// Reads the boxes around the primary image (ISO/IEC 14496-12 and 23008-12). All of their content
/// is untrusted input.
enum HEIFContainer {
  /// Returns the colour code points of the primary image.
  ///
  /// - Returns: `nil` if the image has no code points or they describe sRGB, if an ICC profile
  ///   takes precedence, or if the boxes are malformed.
  static func codePoints(of file: UnsafeRawBufferPointer) -> CodePoints? {
    guard let items = HEIFItems(of: file),
      let boxes = items.properties(of: [items.primary])?[items.primary]
    else { return nil }
    var points: (primaries: Int, transfer: Int)?
    var peak: Double?
    for box in boxes {
      var content = box.content
      switch box.type {
      case "colr":
        let kind = try? content.name()
        if kind == "prof" || kind == "rICC" { return nil }
        // The matrix and range follow; libheif has already applied them.
        if kind == "nclx", let primaries = try? content.number(2),
          let transfer = try? content.number(2)
        {
          points = (primaries, transfer)
        }
      case "clli":
        // CTA-861.3: MaxCLL; 0 means unknown.
        if let light = try? content.number(2), light > 0 { peak = Double(light) }
      default: break
      }
    }
    return points.flatMap {
      CodePoints(primaries: $0.primaries, transfer: $0.transfer, peak: peak)
    }
  }
}
