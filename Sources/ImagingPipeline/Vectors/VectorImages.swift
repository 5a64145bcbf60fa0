// VectorImages: checks the images that an SVG contains as `data:` URLs.

import FoundationEssentials
import ImagingWire
import Model

/// Checks the PNGs and JPEGs inside an SVG before librsvg decodes them, whole. It draws no other images, and loads none
/// from elsewhere. An image with a fault is not drawn, and the rest of the SVG is.
enum VectorImages {
  /// Returns the pixels of the images that an element shows.
  ///
  /// - Throws: `ImageError.tooCostly` for a PNG whose texts inflate to too much, an image with too many scans or parts, and
  ///   an image within entities of the document.
  static func pixels(of tag: VectorTag, limits: ImagingLimits) throws(ImageError) -> Int {
    var links: [VectorBytes] = []
    tag.forEachAttribute { name, _, value in if name == "href" { links.append(value) } }
    var pixels = 0
    for link in links {
      for bytes in try contents(of: link) {
        let found = bytes.withUnsafeBytes { bytes in
          Result { () throws(ImageError) in try Self.pixels(of: bytes, limits: limits) }
        }
        pixels = min(pixels + (try found.get()), limits.maximumPixels + 1)
      }
    }
    return pixels
  }

  /// Returns the pixels of an image, at most one more than the limit; 0 for what is not drawn.
  private static func pixels(
    of image: UnsafeRawBufferPointer, limits: ImagingLimits
  ) throws(ImageError) -> Int {
    guard let format = FormatSigns.format(of: image), format == .png || format == .jpeg else {
      return 0
    }
    guard format == .jpeg || !PNGText.isExcessive(image) else {
      throw .tooCostly(
        reason: "a PNG in the SVG has text that inflates to more than \(PNGText.maximum) bytes")
    }
    do throws(ImageError) {
      try ContainerLengths.check(image, as: format, limits: limits)
    } catch {
      if case .tooCostly = error { throw error }
    }
    guard let header = try? SourceHeader(of: image, as: format, frame: nil, failOn: .none) else {
      return 0
    }
    _ = try SourceCost.check(image, header: header, limits: limits)
    return min(header.size.pixels, limits.maximumPixels + 1)
  }

  /// Returns the bytes of a `data:` URL (RFC 2397) in each way in which they may be read; none for any other link.
  private static func contents(of link: VectorBytes) throws(ImageError) -> [Data] {
    // White space in an attribute is read as spaces (XML 1.0, 3.3.3).
    let spaced =
      link.contains(where: VectorTag.isSpace) ? link.map { VectorTag.isSpace($0) ? 0x20 : $0 } : nil
    let decoded =
      if let spaced { spaced.withUnsafeBytes { VectorTag.decoded($0[...]) } } else {
        VectorTag.decoded(link)
      }
    guard let decoded else { throw .tooCostly(reason: "an image in the SVG is given by entities") }
    // A parser of URLs removes tabs and line breaks, here from character references.
    let url = decoded.utf8.filter { $0 == 0x20 || !VectorTag.isSpace($0) }.drop { $0 == 0x20 }
    guard String(decoding: url.prefix(5), as: UTF8.self).lowercased() == "data:",
      let comma = url.firstIndex(of: UInt8(ascii: ","))
    else { return [] }
    let content = unescaped(url[comma...].dropFirst())
    // Only the last parameter says that the content is coded, and it may have spaces around it.
    let isCoded = String(decoding: url[..<comma], as: UTF8.self).lowercased().contains("base64")
    return isCoded ? [content, uncoded(content)] : [content]
  }

  /// Decodes Base64 without regard to other characters, and with or without padding.
  private static func uncoded(_ content: Data) -> Data {
    var digits = content.filter {
      switch $0 {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"):
        true
      default: false
      }
    }
    if digits.count % 4 == 1 { digits.removeLast() }
    digits += Data(repeating: UInt8(ascii: "="), count: (4 - digits.count % 4) % 4)
    return Data(base64Encoded: digits) ?? Data()
  }

  /// Returns the bytes with percent-encoded ones decoded (RFC 3986, section 2.1).
  private static func unescaped(_ text: ArraySlice<UInt8>) -> Data {
    guard text.contains(UInt8(ascii: "%")) else { return Data(text) }
    var result = Data()
    var rest = text
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), rest.count > 1, rest.prefix(2).allSatisfy(isDigit),
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    Character(Unicode.Scalar(byte)).isHexDigit
  }
}
