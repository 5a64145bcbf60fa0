// Pixels: an uncompressed test image, computed or decoded, with measures of likeness.

import CVips
import Core
import Glibc

/// An uncompressed image: 8 bits per band, rows from top to bottom, interleaved bands.
public struct Pixels: Sendable {
  /// The size in pixels.
  public private(set) var size: PixelSize
  /// The number of bands: 1 grey, 2 grey and alpha, 3 RGB, 4 RGBA (or CMYK where stated).
  public let bands: Int
  /// The `width × height × bands` values.
  public var values: [UInt8]

  /// Creates an image by computing each pixel.
  public init(width: Int, height: Int, bands: Int = 3, _ pixel: (_ x: Int, _ y: Int) -> [UInt8]) {
    size = PixelSize(width: width, height: height)
    self.bands = bands
    values = []
    values.reserveCapacity(width * height * bands)
    for y in 0..<height { for x in 0..<width { values.append(contentsOf: pixel(x, y)) } }
  }

  /// Creates an image of one colour, with one value per band.
  public init(width: Int, height: Int, color: [UInt8]) {
    self.init(width: width, height: height, bands: color.count) { _, _ in color }
  }

  /// Returns the test scene: smooth shading with a coloured block in each corner, a quarter of each
  /// side wide. The blocks are red upper left, green upper right, blue lower left and yellow lower
  /// right.
  ///
  /// The scene is the same at any size, so a good resize of a large scene looks like a scene
  /// computed at the target size.
  public static func scene(width: Int, height: Int, alpha: Bool = false) -> Pixels {
    Pixels(width: width, height: height, bands: alpha ? 4 : 3) { x, y in
      let u = (Double(x) + 0.5) / Double(width)
      let v = (Double(y) + 0.5) / Double(height)
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

  /// Decodes an image in any format that libvips reads.
  ///
  /// - Parameters:
  ///   - bytes: The encoded image.
  ///   - frame: The index of a frame of an animation.
  ///   - options: Options of libvips's loader in brackets, such as `[shrink=2]`.
  /// - Throws: `TestImages.Failure` with libvips's text.
  public init(decoding bytes: [UInt8], frame: Int? = nil, options: String? = nil) throws {
    let options = options ?? frame.map { "[page=\($0)]" } ?? ""
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

  /// Returns the bands of one pixel.
  public subscript(x: Int, y: Int) -> [UInt8] {
    let start = (y * size.width + x) * bands
    return Array(values[start..<start + bands])
  }

  /// Returns red, green and blue of one pixel, also for grey images.
  public func rgb(x: Int, y: Int) -> [UInt8] {
    let pixel = self[x, y]
    return bands < 3 ? [pixel[0], pixel[0], pixel[0]] : Array(pixel[0..<3])
  }

  /// The colours at an eighth of each side from the four corners: upper left, upper right, lower
  /// left, lower right.
  public var corners: [[UInt8]] {
    let x = size.width / 8
    let y = size.height / 8
    let right = size.width - 1 - x
    let bottom = size.height - 1 - y
    return [rgb(x: x, y: y), rgb(x: right, y: y), rgb(x: x, y: bottom), rgb(x: right, y: bottom)]
  }

  /// Returns a part of the image.
  public func cut(x: Int, y: Int, width: Int, height: Int) -> Pixels {
    Pixels(width: width, height: height, bands: bands) { self[x + $0, y + $1] }
  }

  /// Returns the image with each pixel enlarged to a square, to create large images with little
  /// computation.
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

  /// Returns the pixels as a file with this EXIF orientation, 1–8, stores them.
  public func stored(forOrientation tag: Int) -> Pixels {
    let w = size.width
    let h = size.height
    let swaps = tag >= 5
    return Pixels(width: swaps ? h : w, height: swaps ? w : h, bands: bands) { x, y in
      // EXIF 2.32, 4.6.4: the visual side of the stored 0th row and 0th column.
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

  /// Returns the mean difference of two images' colours, in 8-bit steps. 0 means equal, and less
  /// than 3 is hardly visible; infinite if the sizes differ.
  public func meanDifference(to other: Pixels) -> Double {
    compare(other) { abs($0) }
  }

  /// Returns the peak signal-to-noise ratio of two images' colours in dB. More than 30 means alike,
  /// infinity equal; negative infinity if the sizes differ.
  public func psnr(to other: Pixels) -> Double {
    let error = compare(other) { $0 * $0 }
    return error == 0 ? .infinity : 10 * log10(255 * 255 / error)
  }

  private func compare(_ other: Pixels, by measure: (Double) -> Double) -> Double {
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
