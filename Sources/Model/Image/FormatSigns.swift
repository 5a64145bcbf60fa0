// FormatSigns: detects an image's format from its first bytes.

/// Detects formats by their signatures. Nothing is decoded.
public enum FormatSigns {
  /// The number of bytes that suffices for detection.
  public static let limit = 64 << 10

  /// Returns the format of an image, or `nil` if the format is unknown.
  public static func format(of bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    if bytes.starts(with: [0xff, 0xd8, 0xff]) { return .jpeg }
    if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) { return .png }
    if bytes.starts(with: "GIF87a".utf8) || bytes.starts(with: "GIF89a".utf8) { return .gif }
    if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
      return .webp
    }
    // 42 is TIFF 6.0 and 43 is BigTIFF, each in either byte order.
    let tiff: [[UInt8]] = [
      [0x49, 0x49, 42, 0], [0x4d, 0x4d, 0, 42], [0x49, 0x49, 43, 0], [0x4d, 0x4d, 0, 43],
    ]
    if tiff.contains(where: { bytes.starts(with: $0) }) { return .tiff }
    if let format = heifFormat(of: bytes) { return format }
    // JPEG XL: codestream (ISO/IEC 18181-1, D.2) or container (18181-2, 9.1). JPEG 2000: ISO/IEC
    // 15444-1, A.4.1 and I.5.1.
    if bytes.starts(with: [0xff, 0x0a]) || bytes.starts(with: signatureBox("JXL ")) { return .jxl }
    if bytes.starts(with: [0xff, 0x4f, 0xff, 0x51]) || bytes.starts(with: signatureBox("jP  ")) {
      return .jp2
    }
    if isBMP(bytes) { return .bmp }
    if isICO(bytes) { return .ico }
    return isSVG(bytes) ? .svg : nil
  }

  /// Returns the format that a source has once it is mended for its decoder: an SVG may be
  /// compressed, or in UTF-16. A gzip file counts as one without a look at its content; no other
  /// format is taken compressed.
  public static func format(ofSource bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    if let format = format(of: bytes) { return format }
    if bytes.starts(with: [0x1f, 0x8b, 8]) { return .svg }
    let isLittle = bytes.starts(with: [0xff, 0xfe])
    guard isLittle || bytes.starts(with: [0xfe, 0xff]) else { return nil }
    let bytes = bytes.prefix(limit)
    let units = stride(from: 2, to: bytes.count - 1, by: 2).map { place in
      UInt16(bytes[place + (isLittle ? 1 : 0)]) << 8 | UInt16(bytes[place + (isLittle ? 0 : 1)])
    }
    let text = Array(String(decoding: units, as: UTF16.self).utf8)
    return text.withUnsafeBytes { isSVG($0) } ? .svg : nil
  }

  /// The 12-byte signature box. Like PNG's signature, it detects text-mode transfers.
  private static func signatureBox(_ type: String) -> [UInt8] {
    [0, 0, 0, 12] + Array(type.utf8) + [0x0d, 0x0a, 0x87, 0x0a]
  }

  /// Header sizes in bytes of a BMP.
  ///
  /// In order: OS/2 1, OS/2 2 cut after any field, Windows 3, Windows 3 with masks, Windows 3 with
  /// an alpha mask, OS/2 2, Windows 4, Windows 5.
  public static let bitmapHeaders =
    [12] + Array(stride(from: 16, through: 64, by: 4)) + [42, 46, 108, 124]

  /// `BM` alone is ambiguous, so the header size is checked, too.
  private static func isBMP(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.starts(with: "BM".utf8) && bytes.count >= 26
      && bitmapHeaders.contains(little(bytes, at: 14, width: 4))
  }

  /// ICO has no distinctive signature, so the directory is checked: 1 to 255 images, and the first
  /// follows the directory. Cursors (kind 2) differ in two fields of an entry, which are not read.
  private static func isICO(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard bytes.starts(with: [0, 0, 1, 0]) || bytes.starts(with: [0, 0, 2, 0]), bytes.count >= 22
    else { return false }
    let count = little(bytes, at: 4, width: 2)
    return (1...255).contains(count) && little(bytes, at: 14, width: 4) >= 40
      && little(bytes, at: 18, width: 4) >= 6 + 16 * count
  }

  /// Returns a little-endian number. `bytes` must contain it.
  private static func little(_ bytes: UnsafeRawBufferPointer, at offset: Int, width: Int) -> Int {
    bytes[offset..<offset + width].reversed().reduce(0) { $0 << 8 | Int($1) }
  }

  /// Returns HEIC or AVIF by the brands in the `ftyp` box (ISO/IEC 14496-12, 4.3).
  private static func heifFormat(of bytes: UnsafeRawBufferPointer) -> ImageFormat? {
    guard bytes.count >= 16, bytes.dropFirst(4).starts(with: "ftyp".utf8) else { return nil }
    let length = bytes.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    // The major brand is at 8, its version at 12, and compatible brands start at 16. 256 bytes
    // cover more brands than writers use.
    let end = min(length, bytes.count, 256)
    let brands = ([8] + stride(from: 16, through: end - 4, by: 4)).map {
      String(decoding: bytes[$0..<$0 + 4], as: UTF8.self)
    }
    if brands.contains(where: ["avif", "avis"].contains) { return .avif }
    let hevc = ["heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs"]
    if brands.contains(where: hevc.contains) { return .heic }
    // The generic brands name no codec. In practice such files contain HEVC.
    return brands[0] == "mif1" || brands[0] == "msf1" ? .heic : nil
  }

  /// Returns whether the root element is `svg`. A byte order mark, an XML declaration, comments and
  /// a document type may precede it.
  private static func isSVG(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var rest = bytes.prefix(limit)
    if rest.starts(with: [0xef, 0xbb, 0xbf]) { rest = rest.dropFirst(3) }
    while true {
      rest = rest.drop { $0 == 0x20 || (0x09...0x0d).contains($0) }
      if rest.starts(with: "<?".utf8) {
        guard skip(past: "?>", in: &rest) else { return false }
      } else if rest.starts(with: "<!--".utf8) {
        rest = rest.dropFirst(4)
        guard skip(past: "-->", in: &rest) else { return false }
      } else if rest.starts(with: "<!DOCTYPE".utf8) {
        guard skipDocumentType(in: &rest) else { return false }
      } else {
        return rest.starts(with: "<svg".utf8)
          && (rest.dropFirst(4).first.map { " \t\r\n\u{c}>/:".utf8.contains($0) } ?? false)
      }
    }
  }

  private static func skip(past text: String, in rest: inout Slice<UnsafeRawBufferPointer>) -> Bool
  {
    while !rest.isEmpty {
      if rest.starts(with: text.utf8) {
        rest = rest.dropFirst(text.utf8.count)
        return true
      }
      rest = rest.dropFirst()
    }
    return false
  }

  /// Skips a document type, which ends at the first `>` outside its internal subset.
  private static func skipDocumentType(in rest: inout Slice<UnsafeRawBufferPointer>) -> Bool {
    var isInSubset = false
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "["): isInSubset = true
      case UInt8(ascii: "]"): isInSubset = false
      case UInt8(ascii: ">") where !isInSubset: return true
      default: break
      }
    }
    return false
  }
}
