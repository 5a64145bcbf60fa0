// ContentDisposition: the file name a browser offers when an image is saved (RFC 6266).

import Core

enum ContentDisposition {
  /// Maximum length in code points. A character has no maximum size, and the response head has
  /// limited room.
  private static let longestStem = 100

  /// Returns the source's name, or that of the request, with the format's extension. A name that is
  /// not plain ASCII is also sent in RFC 8187's encoding.
  static func value(
    _ source: SourceURL, format: ImageFormat, _ presentation: Presentation = Presentation()
  ) -> String {
    let kind = presentation.isAttachment ? "attachment" : "inline"
    if presentation.stem == nil, let stem = plainStem(of: source.fileName) {
      return "\(kind); filename=\"\(stem).\(format.fileExtension)\""
    }
    let stem = (presentation.stem ?? stem(of: source)).unicodeScalars
    let visible = stem.prefix(longestStem).filter { isVisible($0) && $0 != "/" && $0 != "\\" }
    var cleaned = String(String.UnicodeScalarView(visible))
    if cleaned.isEmpty || cleaned.allSatisfy({ $0 == "." }) { cleaned = "image" }
    let full = cleaned + "." + format.fileExtension
    let plain = String(
      full.unicodeScalars.map { isPlain($0) ? Character($0) : "_" })
    let value = "\(kind); filename=\"\(plain)\""
    return plain == full ? value : value + "; filename*=UTF-8''" + PercentEncoding.encode(full)
  }

  /// Returns the name of a source, decoded, without its extension.
  private static func stem(of source: SourceURL) -> String {
    let encoded = Array(source.fileName.utf8)
    // A local path is already decoded; decoding again would change a literal `%41` to `A`.
    let name =
      source.scheme == .local
      ? String(source.fileName) : PercentEncoding.decode(encoded) ?? String(source.fileName)
    let dot = name.lastIndex(of: ".") ?? name.endIndex
    return String(name[..<(dot == name.startIndex ? name.endIndex : dot)])
  }

  /// Returns the name without its extension if it needs no decoding, replacing or shortening. This
  /// is the common case.
  static func plainStem(of name: Substring) -> Substring? {
    let stem = name[..<(name.utf8.lastIndex(of: UInt8(ascii: ".")) ?? name.endIndex)]
    let isPlain =
      stem.utf8.count <= longestStem && stem.utf8.contains { $0 != UInt8(ascii: ".") }
      && stem.utf8.allSatisfy { plain[Int($0)] }
    return isPlain ? stem : nil
  }

  /// Whether a scalar shows what it is. Control and format characters (Unicode's general categories
  /// Cc and Cf), such as the bidirectional controls, can make `gpj.exe` look like `exe.jpg`;
  /// separators of lines and paragraphs can hide the end of a name.
  private static func isVisible(_ scalar: UnicodeScalar) -> Bool {
    // The joiners are part of words in Persian and Hindi, and of emoji.
    if scalar.value == 0x200c || scalar.value == 0x200d { return true }
    return switch scalar.properties.generalCategory {
    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate: false
    default: true
    }
  }

  /// Whether every parser accepts the scalar inside quotes.
  private static func isPlain(_ scalar: UnicodeScalar) -> Bool {
    scalar.isASCII && plain[Int(scalar.value)]
  }

  /// Whether `isPlain` holds, for each UTF-8 byte.
  private static let plain: [Bool] = (0..<256).map { byte in
    switch UInt8(byte) {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: " ._-@()+,=~".utf8.contains(UInt8(byte))
    }
  }
}
