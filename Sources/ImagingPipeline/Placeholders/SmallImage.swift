// SmallImage: an image so small that it is looked at pixel by pixel, in memory of Swift's.

import CVips
import Glibc
import Model

/// Up to some thousand pixels in sRGB, red, green, blue and alpha of 8 bits each; colours are not weighted by alpha.
struct SmallImage: Equatable {
  let size: PixelSize
  /// Rows from top to bottom, four values a pixel.
  private(set) var values: [UInt8] = []

  /// An image whose pixels are computed one by one.
  init(_ size: PixelSize, _ pixel: (_ x: Int, _ y: Int) -> [UInt8]) {
    self.size = size
    values.reserveCapacity(size.pixels * 4)
    for y in 0..<size.height { for x in 0..<size.width { values += pixel(x, y) } }
  }

  /// An image that the pipeline made: sRGB or grey, 8 bits, with or without an alpha.
  ///
  /// - Throws: what its source has wrong with it, which may come to light only now.
  init(_ image: borrowing Image) throws(ImageError) {
    let (size, bands) = (image.size, image.bands)
    let memory = try image.withVipsImage { image throws(ImageError) in
      var count = 0
      guard let memory = vips_image_write_to_memory(image, &count) else {
        throw VipsLibrary.failure(in: "pixels")
      }
      return UnsafeRawBufferPointer(start: memory, count: count)
    }
    defer { g_free(UnsafeMutableRawPointer(mutating: memory.baseAddress)) }
    guard (1...4).contains(bands), memory.count == size.pixels * bands else {
      throw .internal(detail: "\(memory.count) bytes of \(size) pixels with \(bands) bands")
    }
    self.init(size) { x, y in
      let start = (y * size.width + x) * bands
      let alpha = bands.isMultiple(of: 2) ? memory[start + bands - 1] : 255
      let (green, blue) = bands < 3 ? (0, 0) : (1, 2)
      return [memory[start], memory[start + green], memory[start + blue], alpha]
    }
  }

  /// Red, green, blue and alpha of all pixels.
  var pixels: [SIMD4<UInt8>] {
    stride(from: 0, to: values.count, by: 4).map {
      SIMD4(values[$0], values[$0 + 1], values[$0 + 2], values[$0 + 3])
    }
  }

  /// Whether nothing shows through.
  var isOpaque: Bool { stride(from: 3, to: values.count, by: 4).allSatisfy { values[$0] == 255 } }

  /// It, with a colour showing where it was transparent, and opaque.
  func laid(on ground: Color) -> SmallImage {
    let ground = [ground.red, ground.green, ground.blue].map(Int.init)
    var result = self
    for start in stride(from: 0, to: values.count, by: 4) {
      let alpha = Int(values[start + 3])
      for (band, behind) in ground.enumerated() {
        let sum = Int(values[start + band]) * alpha + behind * (255 - alpha)
        result.values[start + band] = UInt8((sum + 127) / 255)
      }
      result.values[start + 3] = 255
    }
    return result
  }

  /// The mean colour, of linear light as an eye does it from afar; alpha is not looked at.
  var meanColor: Color {
    let mean = SRGB.linear(self).reduce(SIMD3<Double>(), +) / Double(size.pixels)
    return Color(
      red: UInt8(SRGB.byte(mean.x)), green: UInt8(SRGB.byte(mean.y)),
      blue: UInt8(SRGB.byte(mean.z)))
  }

  /// It in libvips's memory, to be encoded; with an alpha only where that says anything.
  func asImage() throws(ImageError) -> Image {
    let bands = isOpaque ? 3 : 4
    let image = try Image(blank: size, bands: bands, profile: [])
    for y in 0..<size.height {
      let row = values[y * size.width * 4..<(y + 1) * size.width * 4]
      let line = bands == 4 ? Array(row) : row.indices.filter { $0 % 4 != 3 }.map { values[$0] }
      try image.write(line, row: y)
    }
    return image
  }
}
