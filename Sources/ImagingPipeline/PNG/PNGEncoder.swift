// PNGEncoder: encodes PNGs, with a palette where that is fewer bytes.

import CVips
import Core

/// Encodes PNGs with all samples and, where few colours are enough, with a palette, and takes the
/// smaller one. Photographs of sources with a palette take 0.4 of the bytes.
struct PNGEncoder {
  /// zlib's level.
  let effort: Int
  /// libimagequant's effort.
  let effortOfPalette: Int
  /// Whether all rows come in seven passes.
  let isInterlaced: Bool
  /// Whether an image with more colours than a palette holds is reduced to a palette.
  let reducesColours: Bool
  /// The bits of a palette that every image is reduced to; `nil`: none is.
  var paletteBits: Int?

  /// Larger images have no palette: it takes libimagequant four times as long as the PNG.
  static let maximumPixels = 4_000_000
  /// The least level of zlib for indices, which have a third or a quarter of the bytes of samples.
  /// On photographs it makes 1 % fewer bytes than level 4.
  private static let leastEffortOfIndices = 6
  /// The part of the bytes that a reduced image may take, in tenths. What saves less is not worth
  /// the colours.
  private static let tenthsWorth = 9

  /// Encodes an image in sRGB or grey.
  func encode(_ image: borrowing Image) throws(ImageError) -> GLibBytes {
    if paletteBits != nil { return try encode(image, isReduced: true) }
    let all = try encode(image, isReduced: false)
    guard image.size.pixels <= Self.maximumPixels, image.bands > 2 else { return all }
    if let palette = PNGPalette(of: image) {
      let indexed = all.withUnsafeBytes { palette.indexed($0, of: image) }
      guard let indexed, indexed.count < all.count else { return all }
      return try GLibBytes(copying: indexed)
    }
    guard reducesColours else { return all }
    let reduced = try encode(image, isReduced: true)
    return 10 * reduced.count < Self.tenthsWorth * all.count ? reduced : all
  }

  /// Encodes with all samples, or with a palette that libimagequant finds.
  private func encode(_ image: borrowing Image, isReduced: Bool) throws(ImageError) -> GLibBytes {
    let level = isReduced ? max(effort, Self.leastEffortOfIndices) : effort
    let form =
      isReduced
      ? "filter=none,palette=true,effort=\(effortOfPalette),dither=\(Output.dither)"
        + (paletteBits.map { ",bitdepth=\($0)" } ?? "") : "filter=all"
    return try image.saved(by: "pngsave", "compression=\(level),interlace=\(isInterlaced),\(form)")
  }
}

/// The colours of an image that has 256 at most.
struct PNGPalette {
  /// The maximum number of colours (PNG, third edition, 11.2.2).
  static let limit = 256

  /// Red, green, blue and alpha of each colour, from the lowest byte up.
  private var colours = ColourTable()
  /// The samples of a pixel: 3, or 4 with alpha.
  private let bands: Int

  /// Counts the colours of an image.
  ///
  /// Returns `nil` if there are more than `limit`, if the image is not in memory, or if it is grey,
  /// which stays grey.
  init?(of image: borrowing Image) {
    bands = image.bands
    guard (3...4).contains(bands), image.pixelBytes == bands, let pixels = image.pixels else {
      return nil
    }
    var last: UInt32?
    for index in 0..<image.size.pixels {
      let colour = Self.colour(pixels + index * bands, bands: bands)
      if colour == last { continue }
      last = colour
      guard colours.insert(colour) else { return nil }
    }
  }

  @inline(__always)
  private static func colour(_ pixel: UnsafePointer<UInt8>, bands: Int) -> UInt32 {
    UInt32(pixel[0]) | UInt32(pixel[1]) << 8 | UInt32(pixel[2]) << 16
      | (bands == 4 ? UInt32(pixel[3]) : 255) << 24
  }

  /// Returns the PNG of the image with a palette, and with all other chunks.
  ///
  /// - Parameter file: The image as a PNG of red, green, blue and perhaps alpha, 8 bits each.
  /// - Returns: `nil` if the file is something else, or if memory is short.
  func indexed(_ file: UnsafeRawBufferPointer, of image: borrowing Image) -> [UInt8]? {
    guard let parts = PNGParts(file), parts.layout.size == image.size,
      parts.layout.pixelBytes == bands
    else { return nil }
    // Transparent colours come first, because `tRNS` ends with the last of them (11.3.1.1).
    let ordered = colours.list.sorted { ($0 >> 24 == 255 ? 1 : 0) < ($1 >> 24 == 255 ? 1 : 0) }
    var places = [UInt8](repeating: 0, count: Self.limit)
    for (place, colour) in ordered.enumerated() {
      guard let index = colours.index(of: colour) else { return nil }
      places[index] = UInt8(place)
    }
    let bits = [1, 2, 4].first { ordered.count <= 1 << $0 } ?? 8
    guard
      let rows = rows(of: image, parts.layout.isInterlaced, bits: bits, places: places),
      let compressed = Zlib.deflated(rows, level: Self.level)
    else { return nil }
    let palette = ordered.flatMap { colour in
      [0, 8, 16].map { UInt8(truncatingIfNeeded: colour >> $0) }
    }
    // One entry at least, so that the image has its alpha when it is decoded.
    let transparent = ordered.count { $0 >> 24 < 255 }
    let alphas = ordered.prefix(bands == 4 ? max(transparent, 1) : 0).map { UInt8($0 >> 24) }
    return parts.file(
      with: compressed,
      form: (UInt8(bits), 3, [("PLTE", palette)] + (alphas.isEmpty ? [] : [("tRNS", alphas)])))
  }

  /// libdeflate's level, which takes a fraction of the time that zlib takes for as many bytes.
  /// Without filters: the index of a colour says nothing about its neighbours (12.7).
  private static let level: CInt = 7

  /// Returns rows of indices, each with the filter byte 0; `nil` if a pixel has an unknown colour.
  ///
  /// - Parameters:
  ///   - bits: The bits of an index: 1, 2, 4 or 8; the leftmost pixel has the highest (7.2).
  ///   - places: For each colour of the table its index in the palette.
  private func rows(
    of image: borrowing Image, _ isInterlaced: Bool, bits: Int, places: [UInt8]
  ) -> [UInt8]? {
    guard let pixels = image.pixels else { return nil }
    let size = image.size
    var result: [UInt8] = []
    result.reserveCapacity(size.pixels * bits / 8 + 2 * size.height)
    var last: (colour: UInt32, place: UInt8)?
    for grid in PNGLayout.grids(isInterlaced: isInterlaced) where grid.x < size.width {
      let columns = (size.width - grid.x + grid.across - 1) / grid.across
      for y in stride(from: grid.y, to: size.height, by: grid.down) {
        // The filter byte and the indices
        let start = result.count + 1
        result.append(contentsOf: repeatElement(0, count: 1 + (columns * bits + 7) / 8))
        let row = pixels + (y * size.width + grid.x) * bands
        for column in 0..<columns {
          let colour = Self.colour(row + column * grid.across * bands, bands: bands)
          if colour != last?.colour {
            guard let index = colours.index(of: colour) else { return nil }
            last = (colour, places[index])
          }
          let bit = column * bits
          result[start + bit / 8] |= (last?.place ?? 0) << UInt8(8 - bits - bit % 8)
        }
      }
    }
    return result
  }
}

/// A set of at most 256 colours in the order of insertion.
private struct ColourTable {
  /// The colours.
  private(set) var list: [UInt32] = []
  /// For each slot 1 more than the index of a colour, or 0. At most a quarter of the slots is used.
  private var slots = [UInt16](repeating: 0, count: 4 * PNGPalette.limit)

  /// Inserts a colour. Returns `false` if there is no room for a new one.
  mutating func insert(_ colour: UInt32) -> Bool {
    let slot = slot(of: colour)
    if slots[slot] > 0 { return true }
    guard list.count < PNGPalette.limit else { return false }
    list.append(colour)
    slots[slot] = UInt16(list.count)
    return true
  }

  /// Returns the index of a colour; `nil` if it is not there.
  func index(of colour: UInt32) -> Int? {
    let number = Int(slots[slot(of: colour)])
    return number > 0 ? number - 1 : nil
  }

  /// Returns the slot of a colour, or the free slot where it would go.
  private func slot(of colour: UInt32) -> Int {
    // Knuth's multiplicative hash; its highest bits depend on all bits of the colour.
    var slot = Int((colour &* 2_654_435_761) >> 22)
    while slots[slot] > 0, list[Int(slots[slot]) - 1] != colour {
      slot = (slot + 1) % slots.count
    }
    return slot
  }
}
