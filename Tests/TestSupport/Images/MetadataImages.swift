// MetadataImages: test images with metadata, and functions that read the metadata of a result.

import CVips

extension TestImages {
  /// The image description in the Exif of `described`.
  public static let exifMark = "EXIFMARK"
  /// The title in the XMP of `described`.
  public static let xmpMark = "XMPMARK"
  /// The caption in the IPTC of `described`.
  public static let iptcMark = "IPTCMARK"
  /// The content of the thumbnails in the Exif and in the Photoshop block of `described`.
  public static let thumbnailMark = "THUMBMARK"

  /// Returns the scene with Exif, XMP, IPTC, thumbnails and a Display P3 profile, where the format
  /// holds them. The image is stored with orientation 6, as Exif and XMP state.
  ///
  /// - Parameters:
  ///   - width: The width of the upright image in pixels.
  ///   - height: The height of the upright image in pixels.
  ///   - suffix: The libvips name of the encoder, such as `.jpg`.
  ///   - xmpThumbnail: Whether the XMP has a thumbnail too.
  public static func described(
    width: Int, height: Int, as suffix: String, xmpThumbnail: Bool = false
  ) throws -> [UInt8] {
    let scene = Pixels.scene(width: width, height: height).stored(forOrientation: 6)
    let jpeg = try encode(scene, as: ".jpg[profile=p3]", orientation: 6) { image in
      let text = "\(exifMark) (\(exifMark), ASCII, 9 components, 9 bytes)"
      vips_image_set_string(image, "exif-ifd0-ImageDescription", text)
      func set(_ name: String, to bytes: [UInt8]) {
        vips_image_set_blob_copy(image, name, bytes, bytes.count)
      }
      set("jpeg-thumbnail-data", to: Array(thumbnailMark.utf8))
      let thumbnail = xmpThumbnail ? "<xmpGImg:image>\(thumbnailMark)</xmpGImg:image>" : ""
      set(
        VIPS_META_XMP_NAME,
        to: Array(
          """
          <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:Description tiff:Orientation="6" \
          dc:title="\(xmpMark)">\(thumbnail)</rdf:Description></x:xmpmeta>
          """.utf8))
      // IIM: record 2, data set 120 (caption), eight bytes.
      let caption = [0x1c, 2, 120, 0, 8] + Array(iptcMark.utf8)
      func resource(_ id: UInt8, content: [UInt8]) -> [UInt8] {
        Array("8BIM".utf8) + [4, id, 0, 0, 0, 0, 0, UInt8(content.count)] + content
          + [UInt8](repeating: 0, count: content.count % 2)
      }
      let blocks =
        resource(0x0c, content: Array(thumbnailMark.utf8)) + resource(0x04, content: caption)
      set(VIPS_META_IPTC_NAME, to: Array("Photoshop 3.0\0".utf8) + blocks)
    }
    return suffix == ".jpg" ? jpeg : try converted(jpeg, to: suffix)
  }

  /// Returns the same image with the same metadata in another format.
  private static func converted(_ bytes: [UInt8], to suffix: String) throws -> [UInt8] {
    try withImage(bytes) { image in
      // A JPEG stores IPTC as Photoshop resources after a name; a TIFF stores the resources without
      // the name.
      var data: UnsafeRawPointer?
      var count = 0
      if vips_image_get_blob(image, VIPS_META_IPTC_NAME, &data, &count) == 0, let data {
        vips_image_set_blob_copy(image, "photoshop-data", data + 14, count - 14)
      }
      return try Self.bytes(of: image, as: suffix)
    }
  }

  /// Returns the metadata blobs that libvips finds in an image, by field name.
  public static func metadata(of bytes: [UInt8]) throws -> [String: [UInt8]] {
    try withImage(bytes) { image in
      var found: [String: [UInt8]] = [:]
      for name in [
        VIPS_META_EXIF_NAME, VIPS_META_XMP_NAME, VIPS_META_IPTC_NAME, VIPS_META_ICC_NAME,
        "jpeg-thumbnail-data", "photoshop-data",
      ] {
        var data: UnsafeRawPointer?
        var count = 0
        guard vips_image_get_typeof(image, name) != 0,
          vips_image_get_blob(image, name, &data, &count) == 0, let data
        else { continue }
        found[name] = Array(UnsafeRawBufferPointer(start: data, count: count))
      }
      return found
    }
  }

  /// Returns the orientation in an Exif (tag 0x0112 of its first directory); 0 if absent.
  public static func orientation(inExif exif: [UInt8]) -> Int {
    guard let start = exif.indices.first(where: { exif[$0...].starts(with: "II*\0".utf8) }) else {
      return 0
    }
    func number(at offset: Int, count: Int) -> Int {
      exif[start + offset..<start + offset + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    let directory = number(at: 4, count: 4)
    let entries = (0..<number(at: directory, count: 2)).map { directory + 2 + 12 * $0 }
    return entries.first { number(at: $0, count: 2) == 0x0112 }.map { number(at: $0 + 8, count: 2) }
      ?? 0
  }
}
