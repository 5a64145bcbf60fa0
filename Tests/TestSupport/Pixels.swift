// Pixels: an image as numbers, computed or decoded, and how alike two of them are.

import CVips
import Glibc
import Model

/// An uncompressed image: 8 bits a band, rows from top to bottom, bands interleaved.
public struct Pixels: Sendable {
  /// Size in pixels.
  public private(set) var size: PixelSize
  /// 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA (or CMYK, where said so).
  public let bands: Int
  /// `width × height × bands` values.
  public var values: [UInt8]

  /// An image whose pixels are computed one by one.
  public init(width: Int, height: Int, bands: Int = 3, _ pixel: (_ x: Int, _ y: Int) -> [UInt8]) {
    size = PixelSize(width: width, height: height)
    self.bands = bands
    values = []
    values.reserveCapacity(width * height * bands)
    for y in 0..<height { for x in 0..<width { values.append(contentsOf: pixel(x, y)) } }
  }

  /// An image of one colour, given as one value a band.
  public init(width: Int, height: Int, color: [UInt8]) {
    self.init(width: width, height: height, bands: color.count) { _, _ in color }
  }

  /// The test scene: a smooth shading with a coloured block, a quarter of each side, in each corner: red upper left,
  /// green upper right, blue lower left, yellow lower right. It is the same scene at any size, so that a scene computed
  /// at the wanted size is what a good resize of a larger one must look like.
  public static func scene(width: Int, height: Int, alpha: Bool = false) -> Pixels {
    Pixels(width: width, height: height, bands: alpha ? 4 : 3) { x, y in
      let (u, v) = ((Double(x) + 0.5) / Double(width), (Double(y) + 0.5) / Double(height))
      let color: [UInt8] =
        switch (u < 0.25, u >= 0.75, v < 0.25, v >= 0.75) {
        case (true, _, true, _): [220, 30, 30]
        case (_, true, true, _): [30, 200, 40]
        case (true, _, _, true): [30, 40, 220]
        case (_, true, _, true): [230, 220, 40]
        default: [UInt8(60 + 150 * u), UInt8(200 - 120 * v), UInt8(80 + 100 * u * v)]
        }
      return alpha ? color + [v < 0.5 ? 255 : UInt8(255 * u)] : color
    }
  }

  /// Decodes an image in any format libvips reads.
  ///
  /// - Parameters:
  ///   - bytes: The encoded image.
  ///   - frame: Which frame of an animation.
  /// - Throws: `TestImages.Failure` with libvips's text.
  public init(decoding bytes: [UInt8], frame: Int? = nil) throws {
    let options = frame.map { "[page=\($0)]" } ?? ""
    (size, bands, values) = try TestImages.withImage(bytes, options: options) { image in
      var count = 0
      guard let memory = vips_image_write_to_memory(image, &count) else {
        throw TestImages.Failure()
      }
      defer { g_free(memory) }
      let size = PixelSize(
        width: Int(vips_image_get_width(image)), height: Int(vips_image_get_height(image)))
      let bands = Int(vips_image_get_bands(image))
      guard count == size.width * size.height * bands else {
        throw TestImages.Failure(text: "not 8 bits a band")
      }
      return (size, bands, [UInt8](UnsafeRawBufferPointer(start: memory, count: count)))
    }
  }

  /// The bands of one pixel.
  public subscript(x: Int, y: Int) -> [UInt8] {
    let start = (y * size.width + x) * bands
    return Array(values[start..<start + bands])
  }

  /// Red, green and blue of one pixel, of grey images too.
  public func rgb(_ x: Int, _ y: Int) -> [UInt8] {
    let pixel = self[x, y]
    return bands < 3 ? [pixel[0], pixel[0], pixel[0]] : Array(pixel[0..<3])
  }

  /// Red, green and blue of the pixel in the middle of the upper left, upper right, lower left and lower right eighth.
  public var corners: [[UInt8]] {
    let (x, y) = (size.width / 8, size.height / 8)
    let (right, bottom) = (size.width - 1 - x, size.height - 1 - y)
    return [rgb(x, y), rgb(right, y), rgb(x, bottom), rgb(right, bottom)]
  }

  /// A part of it.
  public func cut(x: Int, y: Int, width: Int, height: Int) -> Pixels {
    Pixels(width: width, height: height, bands: bands) { self[x + $0, y + $1] }
  }

  /// It, each of whose pixels became a square of so many: large images without computing as many pixels.
  public func zoomed(by factor: Int) -> Pixels {
    var zoomed = Pixels(width: 0, height: 0, color: [UInt8](repeating: 0, count: bands))
    zoomed.size = PixelSize(width: size.width * factor, height: size.height * factor)
    for y in 0..<size.height {
      let row = (0..<size.width).flatMap { x in
        [[UInt8]](repeating: self[x, y], count: factor).joined()
      }
      for _ in 0..<factor { zoomed.values += row }
    }
    return zoomed
  }

  /// How an image that is to look like this one lies in a file with that EXIF orientation, 1–8.
  public func stored(forOrientation tag: Int) -> Pixels {
    let (w, h) = (size.width, size.height)
    let swaps = tag >= 5
    return Pixels(width: swaps ? h : w, height: swaps ? w : h, bands: bands) { x, y in
      // EXIF 2.32, 4.6.4: where the stored 0th row and 0th column are in the image as it is seen.
      switch tag {
      case 2: self[w - 1 - x, y]
      case 3: self[w - 1 - x, h - 1 - y]
      case 4: self[x, h - 1 - y]
      case 5: self[y, x]
      case 6: self[w - 1 - y, x]
      case 7: self[w - 1 - y, h - 1 - x]
      case 8: self[y, h - 1 - x]
      default: self[x, y]
      }
    }
  }

  /// Mean difference of two images' colours, in steps of 8 bits: 0 is equal, below 3 hardly to be seen. Infinite when
  /// the sizes differ.
  public func meanDifference(to other: Pixels) -> Double {
    compare(other) { abs($0) }
  }

  /// Peak signal-to-noise ratio of two images' colours in dB: above 30 alike, infinite when equal, negative infinity
  /// when the sizes differ.
  public func psnr(to other: Pixels) -> Double {
    let error = compare(other) { $0 * $0 }
    return error == 0 ? .infinity : 10 * log10(255 * 255 / error)
  }

  private func compare(_ other: Pixels, _ measure: (Double) -> Double) -> Double {
    guard size == other.size else { return .infinity }
    var sum = 0.0
    let colors = min(bands, other.bands) < 3 ? 1 : 3
    for index in 0..<size.width * size.height {
      for band in 0..<colors {
        sum += measure(
          Double(values[index * bands + band]) - Double(other.values[index * other.bands + band]))
      }
    }
    return sum / Double(size.width * size.height * colors)
  }
}
