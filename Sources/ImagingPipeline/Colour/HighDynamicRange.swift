// HighDynamicRange: converts images described by code points, including PQ and HLG, to sRGB.

import CVips
import Model

extension Image {
  /// Converts the image to sRGB: decodes values to light, tone-maps the range, converts the
  /// primaries, and clips what is outside sRGB.
  ///
  /// - Parameter codePoints: The colour space of the first three bands, or of a grey. Another band is alpha.
  consuming func shown(_ codePoints: CodePoints) throws(ImageError) -> Image {
    let size = size
    let bands = min(bands, 4)
    let result = try Image(blank: size, bands: bands, profile: [])
    let row = UnsafeMutablePointer<UInt8>.allocate(capacity: size.width * bands)
    defer { row.deallocate() }
    let converter = LightConverter(codePoints, of: self, bands: bands)
    let rows = try PixelRows(of: self)
    for y in 0..<size.height {
      try converter.convert(rows.row(y), to: row, width: size.width)
      try result.write(row, row: y)
    }
    return result
  }
}

/// Converts rows of 8 or 16 bits per band.
private struct LightConverter {
  private let tables: LightTables
  private let matrix: [SIMD3<Float>]
  private let luminance: SIMD3<Float>
  private let scale: Float
  private let isWide: Bool
  /// The bands of a source pixel, and of a result pixel.
  private let stride: Int
  private let bands: Int
  /// The bands of colour: 1 for grey.
  private let colours: Int

  init(_ codePoints: CodePoints, of image: borrowing Image, bands: Int) {
    tables = LightTables(codePoints)
    matrix = codePoints.primaries.toBT709
    // H.273, table 2: the share of each primary in white.
    luminance =
      switch codePoints.primaries {
      case .bt709: [0.2126, 0.7152, 0.0722]
      case .bt2020: [0.2627, 0.6780, 0.0593]
      case .displayP3: [0.2290, 0.6917, 0.0793]
      }
    isWide = image.format == VIPS_FORMAT_USHORT
    scale = Float(1 / image.fullLight)
    stride = image.bands
    self.bands = bands
    colours = bands < 3 ? 1 : 3
  }

  /// Writes `width × bands` bytes.
  ///
  /// - Parameter row: `width` pixels of `stride` bands, with 1 or 2 bytes each.
  func convert(
    _ row: UnsafePointer<UInt8>, to result: UnsafeMutablePointer<UInt8>, width: Int
  ) {
    let bytes = UnsafeRawPointer(row)
    func signal(_ index: Int) -> Float {
      let value =
        isWide
        ? Float(bytes.loadUnaligned(fromByteOffset: index &* 2, as: UInt16.self))
        : Float(row[index])
      return value * scale
    }
    let red = matrix[0]
    let green = matrix[1]
    let blue = matrix[2]
    // Three equal bands stay equal in all primaries.
    let (second, third) = colours == 1 ? (0, 0) : (1, 2)
    for x in 0..<width {
      let from = x &* stride
      let to = x &* bands
      let light = tables.shown(
        SIMD3(
          tables.light(of: signal(from)), tables.light(of: signal(from &+ second)),
          tables.light(of: signal(from &+ third))), luminance: luminance)
      result[to] = tables.byte(of: (red * light).sum())
      if colours == 3 {
        result[to &+ 1] = tables.byte(of: (green * light).sum())
        result[to &+ 2] = tables.byte(of: (blue * light).sum())
      }
      if bands > colours {
        result[to &+ colours] = UInt8(min(1, signal(from &+ colours)) * 255 + 0.5)
      }
    }
  }
}
