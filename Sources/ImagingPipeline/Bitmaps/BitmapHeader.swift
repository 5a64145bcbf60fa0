// BitmapHeader: reads the header of a Windows bitmap, in a BMP or in an icon.

import Model

/// The header of a device-independent bitmap of any version, and the offsets of its parts. Follows
/// "Bitmap Header Types" in Microsoft's GDI documentation, plus the OS/2 headers of 12 and 16
/// to 64 bytes.
struct BitmapHeader {
  /// The storage of pixels.
  enum Coding {
    /// Palette indices of 1, 2, 4 or 8 bits.
    case indices
    /// Run-length encoded palette indices of 4 or 8 bits.
    case runs
    /// Numbers of 2, 3 or 4 bytes, with a mask for red, green, blue and optionally alpha.
    case masks([BitmapMask])
  }

  let size: PixelSize
  /// Whether the first row of the file is the top row.
  let isTopDown: Bool
  /// Bits per pixel.
  let depth: Int
  let coding: Coding
  /// 256 colours of three bytes, red first; black where the file defines no colour.
  let palette: [UInt8]
  /// The offset of the pixels from the start of the file, or of the header in an icon.
  let pixels: Int
  /// The ICC profile; empty if absent, and always empty in an icon.
  let profile: [UInt8]

  /// The bytes from one row to the next: rows are padded to 32 bits.
  var stride: Int { (size.width * depth + 31) / 32 * 4 }
  /// The bytes of a row that contain pixels.
  var rowBytes: Int { (size.width * depth + 7) / 8 }
  /// Whether pixels have an alpha.
  var hasAlpha: Bool {
    if case .masks(let masks) = coding { masks.count == 4 } else { false }
  }

  /// The longest side of a libvips image: `VIPS_MAX_COORD`.
  private static let longestSide = 10_000_000

  /// Reads the header.
  ///
  /// In an icon the pixels follow the header, the height includes the rows of the mask, and the
  /// fourth byte of 32-bit pixels is alpha.
  ///
  /// - Parameters:
  ///   - bytes: The file.
  ///   - start: The offset of the header.
  ///   - pixels: The offset of the pixels as the file states it; `nil` in an icon.
  /// - Throws: `ImageError.undecodable`; `.unsupportedFormat` for compressions that only printers
  ///   and OS/2 use.
  init(_ bytes: LittleEndianBytes, at start: Int, pixels: Int?) throws(ImageError) {
    let length = try bytes.number(at: start, width: 4)
    guard FormatSigns.bitmapHeaders.contains(length) else {
      throw .undecodable(detail: "a bitmap with a header of \(length) bytes")
    }
    let isCore = length == 12
    // Fields that a short OS/2 header lacks are 0.
    func number(at offset: Int) throws(ImageError) -> Int {
      offset + 4 <= length ? try bytes.number(at: start + offset, width: 4) : 0
    }
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

    let compression = try number(at: 16)
    // The masks are part of the longer headers, and follow the 40-byte header.
    let hasMasks =
      (compression == 3 || compression == 6) && [40, 52, 56, 108, 124].contains(length)
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
      // An empty alpha mask means that pixels have no alpha.
      if values.count == 4, values[3] == 0 { values.removeLast() }
      coding = try .masks(Self.masks(values))
    case (3...5, _):
      throw .unsupportedFormat(detail: "a bitmap of compression \(compression), depth \(depth)")
    default: throw .undecodable(detail: "a bitmap of compression \(compression), depth \(depth)")
    }

    let table = start + length + masksBehind
    let entry = isCore ? 3 : 4
    var colors = depth <= 8 ? 1 << depth : 0
    let stated = try number(at: 32)
    if stated > 0 { colors = min(colors, stated) }
    // OS/2 writers omit colours; the offset of the pixels then gives the length of the palette.
    if let pixels, pixels > table { colors = min(colors, (pixels - table) / entry) }
    var palette = [UInt8](repeating: 0, count: 256 * 3)
    let list = try bytes.part(at: table, count: colors * entry)
    for index in 0..<colors {
      for band in 0..<3 { palette[index * 3 + band] = list[index * entry + 2 - band] }
    }
    self.palette = palette
    // Images of more than 8 bits may have a palette for displays with few colours; the pixels
    // follow it.
    let end = table + (depth <= 8 ? colors : min(stated, 256)) * entry
    self.pixels = pixels.map { $0 < table ? end : $0 } ?? end
    // An icon may hold many images that share one profile of any length, so profiles of icons are
    // not copied.
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

  /// Returns the profile of a 124-byte header (`PROFILE_EMBEDDED`); its offset counts from the
  /// start of the header. A truncated profile counts as absent.
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

/// A colour mask of a pixel, with the conversion of its value to 8 bits.
struct BitmapMask {
  private let shift: UInt32
  private let low: UInt32
  private let values: [UInt8]

  /// Returns `nil` if the mask's bits are not contiguous. Of more than 8 bits, only the upper 8 are
  /// used.
  init?(_ mask: UInt32) {
    let bits = mask.nonzeroBitCount
    guard bits > 0 else {
      shift = 0
      low = 0
      values = [0]
      return
    }
    guard bits == 32 - mask.leadingZeroBitCount - mask.trailingZeroBitCount else { return nil }
    let kept = min(bits, 8)
    shift = UInt32(mask.trailingZeroBitCount + bits - kept)
    low = 1 << UInt32(kept) - 1
    let maximum = Int(low)
    values = (0...maximum).map { UInt8(($0 * 255 + maximum / 2) / maximum) }
  }

  /// The colour value of a pixel, 0–255.
  subscript(pixel: UInt32) -> UInt8 { values[Int(pixel >> shift & low)] }
}
