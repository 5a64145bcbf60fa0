// Metadata: copies the Exif, XMP and IPTC that still apply from a source to its result.

import CVips
import Model

/// The libvips field of a TIFF's Photoshop resource blocks; a JPEG's are in its IPTC field.
private let photoshopName = "photoshop-data"

extension Image {
  /// Whether the image has metadata to be written.
  var hasMetadata: Bool {
    withVipsImage { image in
      [VIPS_META_EXIF_NAME, VIPS_META_XMP_NAME, VIPS_META_IPTC_NAME, photoshopName]
        .contains { (name: String) in vips_image_get_typeof(image, name) != 0 }
    }
  }

  /// Copies a source's metadata: Exif, XMP and IPTC. Excludes the orientation, because pixels are
  /// upright, and thumbnails, which show what was cropped.
  ///
  /// - Parameters:
  ///   - source: The source as opened.
  ///   - format: The output format of this image.
  func takeMetadata(of source: borrowing Image, for format: ImageFormat) {
    if let exif = source.blob(VIPS_META_EXIF_NAME).flatMap(Exif.cleaned) {
      set(VIPS_META_EXIF_NAME, to: exif)
      takeExifTags(of: source)
    }
    if let packet = source.blob(VIPS_META_XMP_NAME).flatMap(XMP.cleaned) {
      set(VIPS_META_XMP_NAME, to: packet)
    }
    let blocks = source.blob(photoshopName) ?? source.blob(VIPS_META_IPTC_NAME)
    if let iptc = blocks.flatMap(IPTC.init) {
      // libvips 8.14.1 truncates a TIFF's own IPTC to a quarter, on reading and on writing.
      if format == .jpeg { set(VIPS_META_IPTC_NAME, to: iptc.segment) }
      if format == .tiff { set(photoshopName, to: iptc.block) }
    }
  }

  /// Copies the individual tags, without which libvips removes them from the Exif. Sets the tags
  /// that libvips overwrites: the orientation to upright, and the resolution.
  private func takeExifTags(of source: borrowing Image) {
    source.withVipsImage { from in
      withVipsImage { to in
        vips_image_set_int(to, "orientation", 1)
        to.pointee.Xres = from.pointee.Xres
        to.pointee.Yres = from.pointee.Yres
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

  /// Returns whether a name is a tag of any directory except the second, which describes the
  /// thumbnail.
  private static func isTag(_ name: String) -> Bool {
    name.hasPrefix("exif-ifd") && !name.hasPrefix("exif-ifd1-") && name != "exif-ifd0-Orientation"
  }

  private func set(_ name: String, to bytes: [UInt8]) {
    withVipsImage { vips_image_set_blob_copy($0, name, bytes, bytes.count) }
  }
}
