// VectorImages: checks the images that an SVG contains as `data:` URLs.

import FoundationEssentials
import ImagingWire
import Model

/// Checks the PNGs and JPEGs inside an SVG before librsvg decodes them, whole. It draws no other images, and loads none
/// from elsewhere. An image with a fault is not drawn, and the rest of the SVG is.
enum VectorImages {
  /// Checks all images.
  ///
  /// - Throws: `ImageError.tooManyPixels` if all together exceed the limit of a source; `.tooCostly` for a PNG whose texts
  ///   inflate to too much, a JPEG with too many scans, and an image within entities of the document.
  static func check(
    _ source: UnsafeRawBufferPointer, limits: ImagingLimits
  ) throws(ImageError) {
    var pixels = 0
    var scanner = VectorScanner(source)
    while let part = scanner.next() {
      guard case .open(let tag) = part, tag.name == "image" || tag.name == "feImage" else {
        continue
      }
      var links: [VectorBytes] = []
      tag.forEachAttribute { name, value in if name == "href" { links.append(value) } }
      for link in links {
        guard let bytes = try content(of: link) else { continue }
        let found = bytes.withUnsafeBytes { bytes in
          Result { () throws(ImageError) in try Self.pixels(of: bytes, limits: limits) }
        }
        pixels += try found.get()
        guard pixels <= limits.maximumPixels else {
          throw .tooManyPixels(pixels: pixels, limit: limits.maximumPixels)
        }
      }
    }
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
    guard let header = try? SourceHeader(of: image, as: format, frame: nil, failOn: .none) else {
      return 0
    }
    try SourceCost.check(image, header: header, limits: limits)
    return min(header.size.pixels, limits.maximumPixels + 1)
  }

  /// Returns the bytes of a `data:` URL (RFC 2397); `nil` for any other link and for what cannot be decoded.
  private static func content(of link: VectorBytes) throws(ImageError) -> Data? {
    guard !link.contains(UInt8(ascii: "\\")) else { return nil }
    guard let text = VectorReference.decoded(link, upTo: .max) else {
      throw .tooCostly(reason: "an image in the SVG is given by entities")
    }
    let url = text.utf8.drop { VectorTag.isSpace($0) }
    guard String(url.prefix(5))?.lowercased() == "data:",
      let comma = url.firstIndex(of: UInt8(ascii: ","))
    else { return nil }
    let isBase64 = String(url[..<comma])?.lowercased().contains("base64") ?? false
    let content = unescaped(url[comma...].dropFirst())
    guard isBase64 else { return content }
    return Data(base64Encoded: content, options: .ignoreUnknownCharacters)
  }

  /// Returns the bytes with percent-encoded ones decoded (RFC 3986, section 2.1).
  private static func unescaped(_ text: Substring.UTF8View) -> Data {
    guard text.contains(UInt8(ascii: "%")) else { return Data(text) }
    var result = Data()
    var rest = text
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%"), let digits = String(rest.prefix(2)), digits.utf8.count == 2,
        let value = UInt8(digits, radix: 16)
      {
        result.append(value)
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }
}
