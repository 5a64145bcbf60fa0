// AVIFItem: finds the coded primary image of an AVIF that is nothing but one image.

import Platform

/// The primary image of an AVIF, if it is a single AV1 image without a transformation (ISO/IEC 23008-12; AV1 Image File
/// Format, 2). All of the container is untrusted input.
struct AVIFItem {
  /// The coded image.
  let data: UnsafeRawBufferPointer
  /// MatrixCoefficients and range (ITU-T H.273) where the container gives them; it then overrides the coded image.
  private(set) var model: (coefficients: Int, isFullRange: Bool)?

  /// The properties that need no work: sizes, depths, aspect, and light, which `HEIFContainer` reads.
  private static let known: Set<String> = [
    "ispe", "pixi", "pasp", "colr", "av1C", "clli", "mdcv", "cclv", "amve",
  ]

  /// - Returns: `nil` for what libheif has to put together: grids, turned and cropped images, layers, several extents; for a
  ///   grey image; and for malformed boxes.
  init?(of file: UnsafeRawBufferPointer) {
    guard var meta = HEIFBox.first("meta", in: ByteReader(file)), meta.skip(4),
      let item = HEIFContainer.primaryItem(in: meta),
      let properties = HEIFBox.first("iprp", in: meta),
      let container = HEIFBox.first("ipco", in: properties),
      let locations = HEIFBox.first("iloc", in: meta),
      let extent = try? Self.extent(of: item, in: locations),
      let data = try? ByteReader(file).part(at: extent.offset, count: extent.count),
      extent.count > 0
    else { return nil }
    self.data = data
    let indices = HEIFContainer.associations(of: item, in: properties)
    var isColour = false
    for (index, box) in HEIFBox.all(in: container).enumerated() where indices.contains(index + 1) {
      guard Self.known.contains(box.type) else { return nil }
      var content = box.content
      if box.type == "av1C" {
        // AV1 Codec ISO Media File Format Binding, 2.3.3: `monochrome` is bit 4 of the third byte.
        guard content.skip(2), let flags = try? content.byte(), flags & 0x10 == 0 else {
          return nil
        }
        isColour = true
      } else if box.type == "colr", (try? content.name()) == "nclx" {
        guard content.skip(4), let coefficients = try? content.number(2),
          let range = try? content.byte()
        else { return nil }
        model = (coefficients, range & 0x80 != 0)
      }
    }
    // A grid has no decoder configuration of its own.
    guard isColour else { return nil }
  }

  /// Returns where an item's only extent is in the file (ISO/IEC 14496-12, 8.11.3); `nil` for any other arrangement.
  private static func extent(
    of item: Int, in box: ByteReader
  ) throws(EndOfBytes) -> (offset: Int, count: Int)? {
    var box = box
    let version = try box.number(1)
    guard version <= 2 else { return nil }
    _ = try box.number(3)
    let widths = try box.number(2)
    let (offsetWidth, lengthWidth) = (widths >> 12, widths >> 8 & 15)
    let (baseWidth, indexWidth) = (widths >> 4 & 15, version > 0 ? widths & 15 : 0)
    guard [offsetWidth, lengthWidth, baseWidth, indexWidth].allSatisfy({ [0, 4, 8].contains($0) })
    else { return nil }
    let idWidth = version < 2 ? 2 : 4
    for _ in 0..<(try box.number(idWidth)) {
      let id = try box.number(idWidth)
      let method = version > 0 ? try box.number(2) & 15 : 0
      let reference = try box.number(2)
      let base = try box.number(baseWidth)
      let extents = try box.number(2)
      guard id == item else {
        _ = try box.take(extents * (indexWidth + offsetWidth + lengthWidth))
        continue
      }
      guard method == 0, reference == 0, extents == 1 else { return nil }
      _ = try box.number(indexWidth)
      let (offset, overflow) = base.addingReportingOverflow(try box.number(offsetWidth))
      let count = try box.number(lengthWidth)
      return overflow ? nil : (offset, count)
    }
    return nil
  }
}
