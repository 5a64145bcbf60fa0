// ContentDisposition: the file name a browser offers when an image is saved (RFC 6266).

import Model

/// Making `Content-Disposition`.
enum ContentDisposition {
  /// In code points and not in characters, one of which can have any number of them: the head of an answer has to find
  /// room beside the request's.
  private static let longestStem = 100

  /// `inline` with the source's name and the sent format's extension; where the name is not plain ASCII, also in
  /// RFC 8187's encoding.
  static func inline(source: SourceURL, format: ImageFormat) -> String {
    if let stem = plainStem(of: source.fileName) {
      return "inline; filename=\"\(stem).\(format.fileExtension)\""
    }
    let encoded = Array(source.fileName.utf8)
    // A local path is decoded already; decoding again would turn a real `%41` in a name into an `A`.
    let name =
      source.scheme == .local
      ? String(source.fileName) : PercentEncoding.decode(encoded) ?? String(source.fileName)
    let dot = name.lastIndex(of: ".") ?? name.endIndex
    let stem = name[..<(dot == name.startIndex ? name.endIndex : dot)].unicodeScalars
    let visible = stem.prefix(longestStem).filter {
      $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value) && $0 != "/" && $0 != "\\"
    }
    var cleaned = String(String.UnicodeScalarView(visible))
    if cleaned.isEmpty || cleaned.allSatisfy({ $0 == "." }) { cleaned = "image" }
    let full = cleaned + "." + format.fileExtension
    let plain = String(
      full.unicodeScalars.map { isPlain($0) ? Character($0) : "_" })
    let value = "inline; filename=\"\(plain)\""
    return plain == full ? value : value + "; filename*=UTF-8''" + PercentEncoding.encode(full)
  }

  /// A name without its extension, where nothing in it has to be decoded, replaced or cut: nearly always.
  private static func plainStem(of name: Substring) -> Substring? {
    let stem = name[..<(name.lastIndex(of: ".") ?? name.endIndex)]
    let isPlain =
      stem.utf8.count <= longestStem && stem.utf8.contains { $0 != UInt8(ascii: ".") }
      && stem.utf8.allSatisfy { plain[Int($0)] }
    return isPlain ? stem : nil
  }

  /// What may stand between quotes in every reader's opinion.
  private static func isPlain(_ scalar: UnicodeScalar) -> Bool {
    scalar.isASCII && plain[Int(scalar.value)]
  }

  /// The same for bytes of UTF-8.
  private static let plain: [Bool] = (0..<256).map { byte in
    switch UInt8(byte) {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "a")...UInt8(ascii: "z"):
      true
    default: " ._-@()+,=~".utf8.contains(UInt8(byte))
    }
  }
}
