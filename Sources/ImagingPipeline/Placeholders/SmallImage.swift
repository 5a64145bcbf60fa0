// SmallImage: an image small enough to be processed pixel by pixel in Swift's memory.

import CVips
import Glibc
import Model

/// An image of up to some thousand pixels in sRGB, as 8-bit red, green, blue and alpha; colours are
/// not premultiplied.
struct SmallImage: Equatable {
  let size: PixelSize
  /// The rows from top to bottom, four values per pixel.
  private(set) var values: [UInt8] = []

  /// Creates an image by computing each pixel.
  init(_ size: PixelSize, pixel: (_ x: Int, _ y: Int) -> [UInt8]) {
    self.size = size
    values.reserveCapacity(size.pixels * 4)
    for y in 0..<size.height { for x in 0..<size.width { values += pixel(x, y) } }
  }

  /// Copies an image from the pipeline: sRGB or grey, 8 bits, with or without alpha.
  ///
  /// - Throws: The error of a damaged source, which may surface only here.
  init(_ image: borrowing Image) throws(ImageError) {
    let size = image.size
    let bands = image.bands
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

  /// Whether every pixel is opaque.
  var isOpaque: Bool { stride(from: 3, to: values.count, by: 4).allSatisfy { values[$0] == 255 } }

  /// Returns the image flattened onto a colour.
  func flattened(onto background: Color) -> SmallImage {
    let background = [background.red, background.green, background.blue].map(Int.init)
    var result = self
    for start in stride(from: 0, to: values.count, by: 4) {
      let alpha = Int(values[start + 3])
      for (band, behind) in background.enumerated() {
        let sum = Int(values[start + band]) * alpha + behind * (255 - alpha)
        result.values[start + band] = UInt8((sum + 127) / 255)
      }
      result.values[start + 3] = 255
    }
    return result
  }

  /// The mean colour in linear light, as seen from a distance; ignores alpha.
  var meanColor: Color {
    let mean = SRGB.linear(self).reduce(SIMD3<Double>(), +) / Double(size.pixels)
    return Color(
      red: UInt8(SRGB.byte(mean.x)), green: UInt8(SRGB.byte(mean.y)),
      blue: UInt8(SRGB.byte(mean.z)))
  }

  /// Returns the image in libvips's memory, ready to be encoded; has alpha only if it is not
  /// opaque.
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
