// SourceDescription: the JSON description of a source that /info returns.

import CVips
import Model

/// A description of a source from its header; no pixel is decoded.
struct SourceDescription {
  private let header: SourceHeader
  private let bytes: Int
  private let density: Int
  /// `rgb`, `grey`, `cmyk`, `lab`, `xyz` or `other`.
  private let space: String
  /// Bits per channel.
  private let bits: Int
  /// The description text of the embedded profile.
  private let profile: String?

  /// Reads the header again, for details that only a description needs.
  ///
  /// - Parameter density: Pixels per point, from the source's name.
  /// - Throws: `ImageError.undecodable`.
  init(of source: UnsafeRawBufferPointer, _ header: SourceHeader, density: Int) throws(ImageError) {
    let image =
      if let page = header.page {
        try Loader.open(source, as: header.format, pages: .one(page), failOn: header.headerFailOn)
      } else {
        try Loader.describe(source, as: header.format, failOn: header.failOn)
      }
    self.header = header
    self.density = density
    bytes = source.count
    space = image.spaceName
    bits = image.integer("heif-bitdepth") ?? image.bitsOfFormat
    profile = image.blob(VIPS_META_ICC_NAME).flatMap(ProfileDescription.read)
  }

  /// Returns the JSON, followed by a line break.
  private func json(_ placeholder: Placeholder?) throws(ImageError) -> String {
    var members: [(name: String, value: JSONText)] = [
      ("format", .text(header.format.rawValue)),
      ("width", .number(header.uprightSize.width)),
      ("height", .number(header.uprightSize.height)),
      ("orientation", .number(header.orientation.tag)),
      ("frames", .number(header.isAnimation ? header.pages : header.undecodedFrames)),
    ]
    if header.undecodedFrames > 1 { members.append(("frames_kept", .number(1))) }
    if header.isAnimation {
      members.append(("loop", .number(header.loop)))
      members.append(("duration_ms", .number(header.delays.reduce(0) { $0 + Int($1) })))
    } else if header.pages > 1 {
      members.append(("pages", .number(header.pages)))
    }
    var colour: [(name: String, value: JSONText)] = [
      ("space", .text(space)), ("bits", .number(bits)),
    ]
    if let profile { colour.append(("profile", .text(profile))) }
    members += [
      ("alpha", .flag(header.hasAlpha)), ("colour", .object(colour)),
      ("bytes", .number(bytes)), ("density", .number(density)),
    ]
    if let placeholder {
      let value: [(name: String, value: JSONText)] = [
        ("kind", .text(placeholder.kind.rawValue)), ("value", .text(try placeholder.text())),
      ]
      members.append(("placeholder", .object(value)))
    }
    return JSONText.object(members).encoded + "\n"
  }

  /// Encodes the response to `/info`.
  func encoded(
    with placeholder: Placeholder? = nil, _ watch: inout StageWatch
  ) throws(ImageError) -> EncodedImage {
    let bytes = try GLibBytes(copying: Array(try json(placeholder).utf8))
    watch.finish(\.encode)
    return EncodedImage(bytes: bytes, content: .sourceDescription, timings: watch.timings)
  }
}

extension Image {
  fileprivate var spaceName: String {
    switch interpretation {
    case VIPS_INTERPRETATION_sRGB, VIPS_INTERPRETATION_RGB, VIPS_INTERPRETATION_RGB16,
      VIPS_INTERPRETATION_scRGB:
      "rgb"
    case VIPS_INTERPRETATION_B_W, VIPS_INTERPRETATION_GREY16: "grey"
    case VIPS_INTERPRETATION_CMYK: "cmyk"
    case VIPS_INTERPRETATION_LAB, VIPS_INTERPRETATION_LABS, VIPS_INTERPRETATION_LABQ: "lab"
    case VIPS_INTERPRETATION_XYZ: "xyz"
    default: "other"
    }
  }

  fileprivate var bitsOfFormat: Int {
    switch format {
    case VIPS_FORMAT_UCHAR, VIPS_FORMAT_CHAR: 8
    case VIPS_FORMAT_USHORT, VIPS_FORMAT_SHORT: 16
    case VIPS_FORMAT_DOUBLE: 64
    default: 32
    }
  }
}
