// BitmapHeader: what a Windows bitmap says about itself, in a BMP or in an icon, before any of its pixels is read.

import Model

/// A device-independent bitmap's header, of any of its kinds ("Bitmap Header Types" in Microsoft's documentation of GDI;
/// the 12 and 64 bytes of OS/2 as well), and where its parts lie.
struct BitmapHeader {
  /// How pixels are stored.
  enum Coding {
    /// Indices of 1, 2, 4 or 8 bits into the palette.
    case indices
    /// Indices of 4 or 8 bits in runs.
    case runs
    /// Numbers of 2, 3 or 4 bytes, with a mask for red, green, blue and, where there is one, alpha.
    case masks([BitmapMask])
  }

  let size: PixelSize
  /// Whether the first row of the file is the top one.
  let isTopDown: Bool
  /// Bits of a pixel.
  let depth: Int
  let coding: Coding
  /// 256 colours of three bytes, red first; black where the file says none.
  let palette: [UInt8]
  /// Where the pixels begin, counted from the file's beginning (an icon's: from the header's).
  let pixels: Int
  /// An ICC profile; empty where there is none, and in an icon.
  let profile: [UInt8]

  /// Bytes from one row to the next: rows fill words of 32 bits.
  var stride: Int { (size.width * depth + 31) / 32 * 4 }
  /// Bytes of a row that hold pixels.
  var rowBytes: Int { (size.width * depth + 7) / 8 }
  /// Whether pixels have an alpha.
  var hasAlpha: Bool {
    if case .masks(let masks) = coding { masks.count == 4 } else { false }
  }

  /// libvips's `VIPS_MAX_COORD`.
  private static let longestSide = 10_000_000

  /// Reads it.
  ///
  /// - Parameters:
  ///   - bytes: The file.
  ///   - start: Where the header begins.
  ///   - pixels: Where the pixels begin, as the file says; `nil` in an icon, where they follow the header, where its
  ///     height counts a mask of as many rows behind the pixels, and where the fourth byte of 32 bits is an alpha.
  /// - Throws: `ImageError.undecodable`; `.unsupportedFormat` for what only printers and OS/2 have in them.
  init(_ bytes: LittleEndianBytes, at start: Int, pixels: Int?) throws(ImageError) {
    let length = try bytes.number(at: start, width: 4)
    guard FormatSigns.bitmapHeaders.contains(length) else {
      throw .undecodable(detail: "a bitmap with a header of \(length) bytes")
    }
    let isCore = length == 12
    let isIcon = pixels == nil
    let width: Int
    var height: Int
    if isCore {
      width = try bytes.number(at: start + 4, width: 2)
      height = try bytes.number(at: start + 6, width: 2)
      depth = try bytes.number(at: start + 10, width: 2)
    } else {
      width = try bytes.signed(at: start + 4)
      height = try bytes.signed(at: start + 8)
      depth = try bytes.number(at: start + 14, width: 2)
    }
    isTopDown = height < 0
    height = isIcon ? abs(height) / 2 : abs(height)
    guard (1...Self.longestSide).contains(width), (1...Self.longestSide).contains(height) else {
      throw .undecodable(detail: "a bitmap of \(width) by \(height)")
    }
    size = PixelSize(width: width, height: height)

    let compression = isCore ? 0 : try bytes.number(at: start + 16, width: 4)
    // The masks are a part of the longer headers, and behind the shorter one.
    let hasMasks = (compression == 3 || compression == 6) && length != 64
    let masksBehind = hasMasks && length == 40 ? (compression == 6 ? 16 : 12) : 0
    let hasAlphaMask = compression == 6 || length >= 56
    switch (compression, depth) {
    case (0, 1), (0, 2), (0, 4), (0, 8): coding = .indices
    case (1, 8), (2, 4): coding = .runs
    case (0, 16): coding = try .masks(Self.masks([0x7c00, 0x03e0, 0x001f]))
    case (0, 24): coding = try .masks(Self.masks(Self.bytewise))
    case (0, 32): coding = try .masks(Self.masks(Self.bytewise + (isIcon ? [0xff00_0000] : [])))
    case (_, 16) where hasMasks, (_, 32) where hasMasks:
      var values: [UInt32] = []
      for index in 0..<(hasAlphaMask ? 4 : 3) {
        values.append(UInt32(try bytes.number(at: start + 40 + 4 * index, width: 4)))
      }
      // No bits for it: pixels have none.
      if values.count == 4, values[3] == 0 { values.removeLast() }
      coding = try .masks(Self.masks(values))
    case (3...5, _):
      throw .unsupportedFormat(detail: "a bitmap of compression \(compression), depth \(depth)")
    default: throw .undecodable(detail: "a bitmap of compression \(compression), depth \(depth)")
    }

    let table = start + length + masksBehind
    let entry = isCore ? 3 : 4
    var colors = depth <= 8 ? 1 << depth : 0
    let said = isCore ? 0 : try bytes.number(at: start + 32, width: 4)
    if said > 0 { colors = min(colors, said) }
    // OS/2's writers leave colours out and say so by where the pixels begin.
    if let pixels, pixels > table { colors = min(colors, (pixels - table) / entry) }
    var palette = [UInt8](repeating: 0, count: 256 * 3)
    let list = try bytes.part(at: table, count: colors * entry)
    for index in 0..<colors {
      for band in 0..<3 { palette[index * 3 + band] = list[index * entry + 2 - band] }
    }
    self.palette = palette
    // Behind a palette that images of more than 8 bits may have for poor screens.
    let end = table + (depth <= 8 ? colors : min(said, 256)) * entry
    self.pixels = pixels.map { $0 < table ? end : $0 } ?? end
    // An icon's images are many and may share one profile of any length: none is copied.
    profile = length == 124 && !isIcon ? Self.profile(in: bytes, at: start) : []
  }

  private static let bytewise: [UInt32] = [0xff0000, 0x00ff00, 0x0000ff]

  private static func masks(_ values: [UInt32]) throws(ImageError) -> [BitmapMask] {
    var masks: [BitmapMask] = []
    for value in values {
      guard let mask = BitmapMask(value) else {
        throw .undecodable(detail: "a bitmap's mask of \(String(value, radix: 16))")
      }
      masks.append(mask)
    }
    return masks
  }

  /// The profile of a header of 124 bytes (`PROFILE_EMBEDDED`), its place counted from the header's beginning. One that is
  /// not all there is none: the image is, without it.
  private static func profile(in bytes: LittleEndianBytes, at start: Int) -> [UInt8] {
    let embedded = 0x4d42_4544  // "MBED"
    guard (try? bytes.number(at: start + 56, width: 4)) == embedded,
      let offset = try? bytes.number(at: start + 112, width: 4),
      let count = try? bytes.number(at: start + 116, width: 4),
      let profile = try? bytes.part(at: start + offset, count: count)
    else { return [] }
    return Array(profile)
  }
}

/// Which bits of a pixel are a colour's, and what they come to in 8.
struct BitmapMask {
  private let shift: UInt32
  private let low: UInt32
  private let values: [UInt8]

  /// `nil` where the bits are not side by side. Of more than 8 the lower ones are left out.
  init?(_ mask: UInt32) {
    let bits = mask.nonzeroBitCount
    guard bits > 0 else {
      (shift, low, values) = (0, 0, [0])
      return
    }
    guard bits == 32 - mask.leadingZeroBitCount - mask.trailingZeroBitCount else { return nil }
    let kept = min(bits, 8)
    shift = UInt32(mask.trailingZeroBitCount + bits - kept)
    low = 1 << UInt32(kept) - 1
    let most = Int(low)
    values = (0...most).map { UInt8(($0 * 255 + most / 2) / most) }
  }

  /// The colour of a pixel, 0–255.
  subscript(pixel: UInt32) -> UInt8 { values[Int(pixel >> shift & low)] }
}
