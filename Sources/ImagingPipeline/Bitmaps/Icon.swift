// Icon: selects one of a Windows icon's images and decodes it.

import Core

/// The largest image of an icon. Of several images of that size it is the one with the most
/// colours, then the first.
///
/// The sizes in the directory are ignored, because they cannot exceed 256 pixels; each image states
/// its own size.
enum Icon {
  /// A bitmap without a file header.
  case bitmap(Bitmap)
  /// A complete PNG (since Windows Vista).
  case png(UnsafeRawBufferPointer)

  /// Reads the directory. Entries that are missing or not an image are skipped.
  ///
  /// - Throws: `ImageError.undecodable` if no image is left.
  init(_ source: UnsafeRawBufferPointer) throws(ImageError) {
    var best: (rank: (pixels: Int, depth: Int), icon: Icon)?
    for place in try IconDirectory(of: source).images {
      let image = UnsafeRawBufferPointer(rebasing: source[place])
      guard let (rank, icon) = try? Self.read(image) else { continue }
      if best.map({ $0.rank < rank }) ?? true { best = (rank, icon) }
    }
    guard let best else { throw .undecodable(detail: "an icon without an image") }
    self = best.icon
  }

  private static func read(
    _ image: UnsafeRawBufferPointer
  ) throws(ImageError) -> (rank: (pixels: Int, depth: Int), icon: Icon) {
    guard FormatSigns.format(of: image) == .png else {
      let bitmap = try Bitmap(inIcon: image)
      return ((bitmap.header.size.pixels, bitmap.header.depth), .bitmap(bitmap))
    }
    // Milder damage is found when the pixels are decoded.
    var limits = ImagingLimits()
    limits.failOn = .none
    try ContainerLengths.check(image, as: .png, limits: limits)
    // PNG (second edition), 11.2.2: the sides are in the header, the first chunk, with up to 31
    // bits each.
    let head = try LittleEndianBytes(image).part(at: 16, count: 8)
    let width = head.prefix(4).reduce(0) { $0 << 8 | Int($1) }
    let height = head.suffix(4).reduce(0) { $0 << 8 | Int($1) }
    let (pixels, isTooLarge) = width.multipliedReportingOverflow(by: height)
    guard !isTooLarge else { throw .undecodable(detail: "a PNG of \(width) by \(height)") }
    return ((pixels, 32), .png(image))
  }

  /// Returns an image with size and bands but without decoded pixels.
  func described() throws(ImageError) -> Image {
    switch self {
    case .bitmap(let bitmap): try bitmap.described()
    case .png(let bytes): try Loader.open(bytes, as: .png, pages: .first, failOn: .none)
    }
  }

  /// Decodes the selected image.
  func image(_ failOn: FailOn) throws(ImageError) -> Image {
    switch self {
    case .bitmap(let bitmap): return try bitmap.image()
    case .png(let bytes):
      try Soundness(of: bytes, as: .png).check(failOn)
      return try Loader.open(bytes, as: .png, pages: .first, failOn: failOn)
    }
  }
}

/// The directory of an icon, which is untrusted: its entries may share images or exceed the file.
struct IconDirectory {
  /// The places of the images within the file, in the order of the directory, each place once.
  ///
  /// Together they have at most `maximumReadings` times the bytes of the file, so the work on all
  /// images is bounded by the file's size. Entries after that are dropped.
  let images: [Range<Int>]

  /// How often the bytes of a file may belong to an image. Images of a sound icon do not overlap. A
  /// writer may state lengths up to the end of the file instead, which 32 images reach here.
  static let maximumReadings = 16

  /// Reads the directory. A truncated one ends where the file ends.
  ///
  /// - Throws: `ImageError.undecodable` if the file has no directory.
  init(of source: UnsafeRawBufferPointer) throws(ImageError) {
    let bytes = LittleEndianBytes(source)
    let stated = try bytes.number(at: 4, width: 2)
    var images: [Range<Int>] = []
    var known: Set<Range<Int>> = []
    var left = Self.maximumReadings * source.count
    for index in 0..<min(stated, (source.count - 6) / 16) {
      let entry = 6 + 16 * index
      let count = try bytes.number(at: entry + 8, width: 4)
      let start = try bytes.number(at: entry + 12, width: 4)
      guard start + count <= source.count, known.insert(start..<start + count).inserted else {
        continue
      }
      left -= count
      guard left >= 0 else { break }
      images.append(start..<start + count)
    }
    self.images = images
  }
}
