// SourceDescription: the JSON description of a source that /info returns.

import CVips
import Core

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
    let (isAnimation, undecoded) = (header.isAnimation, header.undecodedFrames)
    var shown: String?
    if let placeholder {
      shown = JSONText.object([
        "kind": JSONText.quoted(placeholder.kind.rawValue),
        "value": JSONText.quoted(try placeholder.text()),
      ])
    }
    return JSONText.object([
      "format": JSONText.quoted(header.format.rawValue),
      "width": "\(header.uprightSize.width)",
      "height": "\(header.uprightSize.height)",
      "orientation": "\(header.orientation.tag)",
      "frames": "\(isAnimation ? header.pages : undecoded)",
      "frames_kept": undecoded > 1 ? "1" : nil,
      "loop": isAnimation ? "\(header.loop)" : nil,
      "duration_ms": isAnimation ? "\(header.delays.reduce(0) { $0 + Int($1) })" : nil,
      "pages": !isAnimation && header.pages > 1 ? "\(header.pages)" : nil,
      "alpha": "\(header.hasAlpha)",
      "colour": JSONText.object([
        "space": JSONText.quoted(space), "bits": "\(bits)",
        "profile": profile.map(JSONText.quoted),
      ]),
      "bytes": "\(bytes)", "density": "\(density)", "placeholder": shown,
    ]) + "\n"
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

/// Writes JSON (RFC 8259) without Foundation, to keep the start of an imaging worker fast.
enum JSONText {
  /// Returns an object on one line; members keep their order.
  static func object(_ members: KeyValuePairs<String, String?>) -> String {
    "{"
      + members.compactMap { name, value in value.map { quoted(name) + ":" + $0 } }
      .joined(separator: ",") + "}"
  }

  /// Quotes a string. RFC 8259, section 7: quotes, backslashes and characters below U+0020 must be
  /// escaped.
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case _ where scalar.value < 0x20:
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
