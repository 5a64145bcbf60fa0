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
    // A FullBox starts with a version and flags, 4 bytes in all.
    guard var meta = HEIFBox.first("meta", in: ByteReader(file)), meta.skip(4),
      let primary = primaryItem(in: meta),
      let properties = HEIFBox.first("iprp", in: meta),
      let container = HEIFBox.first("ipco", in: properties)
    else { return nil }
    let indices = associations(of: primary, in: properties)
    // Property indices start at 1.
    let boxes = HEIFBox.all(in: container).enumerated().filter { indices.contains($0.offset + 1) }
      .map(\.element)
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

  /// Returns the number of the primary item (ISO/IEC 14496-12, 8.11.4).
  static func primaryItem(in meta: ByteReader) -> Int? {
    guard var box = HEIFBox.first("pitm", in: meta), let version = try? box.number(1),
      box.skip(3)
    else { return nil }
    return try? box.number(version == 0 ? 2 : 4)
  }

  /// Returns the indices of an item's properties (ISO/IEC 23008-12, 9.3).
  static func associations(of item: Int, in properties: ByteReader) -> Set<Int> {
    var indices: Set<Int> = []
    for box in HEIFBox.all(in: properties) where box.type == "ipma" {
      var content = box.content
      guard let version = try? content.number(1), let flags = try? content.number(3),
        let entries = try? content.number(4)
      else { continue }
      let isWide = flags & 1 != 0
      var entry = 0
      while entry < entries, let id = try? content.number(version == 0 ? 2 : 4),
        let count = try? content.number(1)
      {
        for _ in 0..<count {
          guard let index = try? content.number(isWide ? 2 : 1) else { return indices }
          // The highest bit marks an essential property.
          if id == item { indices.insert(index & (isWide ? 0x7fff : 0x7f)) }
        }
        entry += 1
      }
    }
    return indices
  }
}
