// Metadata: copies the Exif, XMP and IPTC that still apply from a source to its result.

import CVips
import Core

/// The frame timing, and the source's Exif, XMP and IPTC if they are kept (`strip=0`).
struct OutputMetadata: ~Copyable {
  private let header: SourceHeader
  private let frames: Int
  /// The result's format, which determines the metadata it can hold.
  private let format: ImageFormat
  /// The opened source with its metadata; `nil` if metadata is dropped.
  private let source: Image?
  /// The profile that the pixels have; empty: sRGB.
  private let profile: [UInt8]

  /// Reads the metadata.
  ///
  /// - Parameter isBare: Whether metadata is dropped.
  init(
    of bytes: UnsafeRawBufferPointer, header: SourceHeader, frames: Int, for output: Output,
    isBare: Bool
  ) throws(ImageError) {
    self.header = header
    self.frames = frames
    format = output.format
    profile = output.profile
    let hasSome = [.jpeg, .png, .webp, .tiff, .heic, .avif].contains(header.format)
    source =
      isBare || !hasSome
      ? nil : try Loader.describe(bytes, as: header.format, failOn: header.failOn)
  }

  /// Returns the size of one frame of an image with vertically stacked frames.
  func frameSize(of image: borrowing Image) -> PixelSize {
    let size = image.size
    return PixelSize(width: size.width, height: size.height / frames)
  }

  /// Returns the image with this metadata only, without the source's texts and palette, and without
  /// its profile if pixels are in sRGB, which decoders assume without one.
  func attached(to image: consuming Image) throws(ImageError) -> Image {
    if frames == 1, source == nil, profile.isEmpty, image.isBare { return image }
    let size = frameSize(of: image)
    // The greys of a profile of three colours are three equal values.
    if !profile.isEmpty { image = try image.able(toShow: Color(red: 255, green: 0, blue: 0)) }
    image = try image.stripped()
    if !profile.isEmpty { image.set(VIPS_META_ICC_NAME, to: profile) }
    if frames > 1 { image.describeAnimation(header, frames: frames, size: size, in: format) }
    switch source {
    case .some(let source): image.takeMetadata(of: source, for: format)
    case .none: break
    }
    return image
  }

  /// Returns the image with each frame resized, and with this metadata.
  func resized(_ image: borrowing Image, to size: PixelSize) throws(ImageError) -> Image {
    let frameSize = frameSize(of: image)
    let small = try Animation.map(try image.copied(), frames: frames, size: frameSize) {
      frame throws(ImageError) in try frame.resized(to: size)
    }
    return try attached(to: small)
  }
}

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

  /// Whether the image has a profile to be written.
  var hasProfile: Bool { withVipsImage { vips_image_get_typeof($0, VIPS_META_ICC_NAME) != 0 } }

  /// Copies a source's metadata: Exif, XMP and IPTC. Excludes the orientation, because pixels are
  /// upright, and thumbnails, which show what was cropped.
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
        for name in source.fields where Self.isTag(name) {
          var value = GValue()
          guard vips_image_get(from, name, &value) == 0 else { continue }
          vips_image_set(to, name, &value)
          g_value_unset(&value)
        }
      }
    }
  }

  /// Returns whether a name is a tag of any directory except the second, which describes the
  /// thumbnail.
  private static func isTag(_ name: String) -> Bool {
    name.hasPrefix("exif-ifd") && !name.hasPrefix("exif-ifd1-") && name != "exif-ifd0-Orientation"
  }

  fileprivate func set(_ name: String, to bytes: [UInt8]) {
    withVipsImage { vips_image_set_blob_copy($0, name, bytes, bytes.count) }
  }
}

/// Exif (CIPA DC-008, EXIF 2.32): directories of tags in TIFF structure.
enum Exif {
  /// Returns the block with the orientation set to upright and without the thumbnail; `nil` if
  /// unreadable.
  ///
  /// - Parameter exif: The block with or without JPEG's six-byte prefix.
  static func cleaned(_ exif: [UInt8]) -> [UInt8]? {
    var exif = exif
    let start = exif.starts(with: "Exif\0\0".utf8) ? 6 : 0
    guard exif.count >= start + 8 else { return nil }
    let isLittle = exif[start] == UInt8(ascii: "I")
    /// Returns a number in the block's byte order; 0 past its end.
    func number(at offset: Int, count: Int) -> Int {
      let from = start + offset
      guard from >= 0, from + count <= exif.count else { return 0 }
      let bytes = exif[from..<from + count]
      return (isLittle ? bytes.reversed() : Array(bytes)).reduce(0) { $0 << 8 | Int($1) }
    }
    /// Returns the offset of each tag's value in a directory, by tag.
    func values(at directory: Int) -> [Int: Int] {
      let count = min(number(at: directory, count: 2), 1000)
      let entries = (0..<count).map { directory + 2 + 12 * $0 }
      return Dictionary(entries.map { (number(at: $0, count: 2), $0 + 8) }) { first, _ in first }
    }
    func clear(at offset: Int, count: Int) {
      let from = start + max(0, offset)
      guard from < exif.count else { return }
      for index in from..<min(from + max(0, count), exif.count) { exif[index] = 0 }
    }

    let first = number(at: 4, count: 4)
    let next = first + 2 + 12 * number(at: first, count: 2)
    guard first >= 8, start + next + 4 <= exif.count else { return nil }
    if let orientation = values(at: first)[0x0112] {
      clear(at: orientation, count: 4)
      exif[start + orientation + (isLittle ? 0 : 1)] = 1
    }
    let second = number(at: next, count: 4)
    if second > 0 {
      let tags = values(at: second)
      // The offset and length of the thumbnail, as a JPEG (4.6.4) or in strips.
      for (place, length) in [(0x0201, 0x0202), (0x0111, 0x0117)] {
        if let place = tags[place], let length = tags[length] {
          clear(at: number(at: place, count: 4), count: number(at: length, count: 4))
        }
      }
      clear(at: next, count: 4)
    }
    return exif
  }
}

/// An XMP packet (ISO 16684-1).
enum XMP {
  /// Returns the packet with the orientation set to upright. Returns `nil` if the packet has
  /// thumbnails (`xmp:Thumbnails`, of type `xmpGImg`), which show the uncropped image.
  static func cleaned(_ packet: [UInt8]) -> [UInt8]? {
    guard packet.firstRange(of: "xmpGImg".utf8) == nil else { return nil }
    var packet = packet
    var start = packet.startIndex
    while let name = packet[start...].firstRange(of: "tiff:Orientation".utf8) {
      start = name.upperBound
      // The value follows as an attribute (`="`) or as an element's content (`>`), with optional
      // white space.
      let content = packet[start...].prefix(8).drop { " =\"'>\t\r\n".utf8.contains($0) }
      if let digit = content.first, (0x31...0x38).contains(digit) {
        packet[content.startIndex] = 0x31
      }
    }
    return packet
  }
}

/// IPTC-NAA's Information Interchange Model, the metadata of news agencies, which files contain as
/// a Photoshop resource.
struct IPTC {
  /// The resource as a TIFF contains it (tag 34377).
  let block: [UInt8]

  private static let prefix = Array("Photoshop 3.0\0".utf8)
  private static let signature = Array("8BIM".utf8)
  /// The resource id; resources with other ids may hold thumbnails.
  private static let resource = 0x0404

  /// Finds the IPTC resource among the Photoshop resources of a JPEG or a TIFF; `nil` if absent.
  init?(_ bytes: [UInt8]) {
    // Adobe Photoshop File Formats Specification, "Image Resource Blocks": signature, id,
    // length-prefixed name, length, content. Name and content are padded to an even number of
    // bytes.
    var rest = bytes[...]
    if rest.starts(with: Self.prefix) { rest = rest.dropFirst(Self.prefix.count) }
    func number(at offset: Int, bytes count: Int) -> Int? {
      guard offset + count <= rest.count else { return nil }
      return rest.dropFirst(offset).prefix(count).reduce(0) { $0 << 8 | Int($1) }
    }
    while rest.starts(with: Self.signature), let id = number(at: 4, bytes: 2),
      let nameLength = number(at: 6, bytes: 1)
    {
      let head = 6 + (1 + nameLength + 1) / 2 * 2 + 4
      guard let length = number(at: head - 4, bytes: 4), head + length <= rest.count else {
        return nil
      }
      let whole = rest.prefix(head + (length + 1) / 2 * 2)
      if id == Self.resource {
        // Some writers omit the last padding byte.
        block = Array(whole) + (whole.count % 2 == 1 ? [0] : [])
        return
      }
      rest = rest.dropFirst(whole.count)
    }
    return nil
  }

  /// The resource as a JPEG segment contains it (APP13).
  var segment: [UInt8] { Self.prefix + block }
}
