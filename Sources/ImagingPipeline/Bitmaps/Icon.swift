// Icon: which of a Windows icon's images counts, and that one's pixels.

import ImagingWire
import Model

/// The largest image of an icon, and of several as large the one with the most colours; the first of equals.
///
/// What the directory says of their sizes is not believed: it has no room for more than 256 pixels, and images tell
/// themselves.
enum Icon {
  /// A bitmap without its file header.
  case bitmap(Bitmap)
  /// A whole PNG (since Windows Vista).
  case png(UnsafeRawBufferPointer)

  /// Looks through the directory; images that are not there or are none are passed over.
  ///
  /// - Throws: `ImageError.undecodable` where nothing is left.
  init(_ source: UnsafeRawBufferPointer) throws(ImageError) {
    let bytes = LittleEndianBytes(source)
    var best: (rank: (pixels: Int, depth: Int), icon: Icon)?
    for index in 0..<(try bytes.number(at: 4, width: 2)) {
      // A directory that is not all there ends where the file does.
      guard let (rank, icon) = try? Self.entry(at: 6 + 16 * index, of: bytes) else { continue }
      if best.map({ $0.rank < rank }) ?? true { best = (rank, icon) }
    }
    guard let best else { throw .undecodable(detail: "an icon without an image") }
    self = best.icon
  }

  private static func entry(
    at offset: Int, of bytes: LittleEndianBytes
  ) throws(ImageError) -> (rank: (pixels: Int, depth: Int), icon: Icon) {
    let (count, start) = (
      try bytes.number(at: offset + 8, width: 4), try bytes.number(at: offset + 12, width: 4)
    )
    let image = try bytes.part(at: start, count: count)
    guard FormatSigns.format(of: image) == .png else {
      let bitmap = try Bitmap(inIcon: image)
      return ((bitmap.header.size.pixels, bitmap.header.depth), .bitmap(bitmap))
    }
    // Milder damage is judged where its pixels are decoded.
    var limits = ImagingLimits()
    limits.failOn = .none
    try ContainerLengths.check(image, as: .png, limits)
    // PNG 1.2, 11.2.2: the sides in the header, the first chunk, each of up to 31 bits.
    let head = try LittleEndianBytes(image).part(at: 16, count: 8)
    let width = head.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    let height = head.suffix(4).reduce(0) { $0 << 8 | Int($1) }
    let (pixels, isTooLarge) = width.multipliedReportingOverflow(by: height)
    guard !isTooLarge else { throw .undecodable(detail: "a PNG of \(width) by \(height)") }
    return ((pixels, 32), .png(image))
  }

  /// Size and colours in an image whose pixels are not decoded yet.
  func described() throws(ImageError) -> Image {
    switch self {
    case .bitmap(let bitmap): try bitmap.described()
    case .png(let bytes): try Loader.open(bytes, as: .png, pages: .first, failOn: .none)
    }
  }

  /// Its image.
  ///
  /// - Parameter failOn: The damage that makes it fail.
  func image(_ failOn: FailOn) throws(ImageError) -> Image {
    switch self {
    case .bitmap(let bitmap): return try bitmap.image()
    case .png(let bytes):
      try Soundness(of: bytes, as: .png).check(failOn)
      return try Loader.open(bytes, as: .png, pages: .first, failOn: failOn)
    }
  }
}
