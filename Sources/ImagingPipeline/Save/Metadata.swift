// Metadata: Exif, XMP and IPTC on their way from a source to its result, without what is no longer true of the pixels.

import CVips
import Model

/// Where libvips keeps what a TIFF has in blocks of Photoshop's; of a JPEG the same is its IPTC.
private let photoshopName = "photoshop-data"

extension Image {
  /// Whether an encoder is to write metadata.
  var hasMetadata: Bool {
    withVipsImage { image in
      [VIPS_META_EXIF_NAME, VIPS_META_XMP_NAME, VIPS_META_IPTC_NAME, photoshopName]
        .contains { (name: String) in vips_image_get_typeof(image, name) != 0 }
    }
  }

  /// Takes over a source's metadata: Exif, XMP, IPTC. Not its orientation, since the pixels are upright, and none of the
  /// thumbnails that each of the three may have: they show what was cut off.
  ///
  /// - Parameters:
  ///   - source: As it was opened.
  ///   - format: The format this image will be encoded in.
  func takeMetadata(of source: borrowing Image, for format: ImageFormat) {
    if let exif = source.bytes(VIPS_META_EXIF_NAME).flatMap(Exif.cleaned) {
      set(VIPS_META_EXIF_NAME, exif)
      takeExifTags(of: source)
    }
    if let packet = source.bytes(VIPS_META_XMP_NAME).flatMap(XMP.cleaned) {
      set(VIPS_META_XMP_NAME, packet)
    }
    let blocks = source.bytes(photoshopName) ?? source.bytes(VIPS_META_IPTC_NAME)
    if let iptc = blocks.flatMap(IPTC.init) {
      // libvips 8.14.1 cuts a TIFF's own IPTC to a quarter, reading and writing.
      if format == .jpeg { set(VIPS_META_IPTC_NAME, iptc.segment) }
      if format == .tiff { set(photoshopName, iptc.block) }
    }
  }

  /// The tags one by one, without which libvips would take them out of the Exif, and what it writes over them: that the
  /// image is upright, and how many pixels make an inch.
  private func takeExifTags(of source: borrowing Image) {
    source.withVipsImage { from in
      withVipsImage { to in
        vips_image_set_int(to, "orientation", 1)
        (to.pointee.Xres, to.pointee.Yres) = (from.pointee.Xres, from.pointee.Yres)
        guard let names = vips_image_get_fields(from) else { return }
        defer { g_strfreev(names) }
        var next = names
        while let name = next.pointee {
          if Self.isTag(String(cString: name)) {
            var value = GValue()
            if vips_image_get(from, name, &value) == 0 {
              vips_image_set(to, name, &value)
              g_value_unset(&value)
            }
          }
          next += 1
        }
      }
    }
  }

  /// All directories but the second, which is the thumbnail's.
  private static func isTag(_ name: String) -> Bool {
    name.hasPrefix("exif-ifd") && !name.hasPrefix("exif-ifd1-") && name != "exif-ifd0-Orientation"
  }

  /// Bytes from the metadata; `nil` when there are none of that name.
  private func bytes(_ name: String) -> [UInt8]? {
    withVipsImage { image in
      var data: UnsafeRawPointer?
      var count = 0
      guard vips_image_get_typeof(image, name) != 0,
        vips_image_get_blob(image, name, &data, &count) == 0, let data
      else { return nil }
      return Array(UnsafeRawBufferPointer(start: data, count: count))
    }
  }

  private func set(_ name: String, _ bytes: [UInt8]) {
    withVipsImage { vips_image_set_blob_copy($0, name, bytes, bytes.count) }
  }
}
