// PlanarSource: results from planes, beside those of sources that are decoded whole.

import Model
import TestSupport

@testable import ImagingPipeline

enum PlanarSource {
  /// Returns a source's result, and that of the same pixels stored without loss.
  static func both(
    _ source: [UInt8], change: @escaping (inout Transform) -> Void
  ) throws -> (made: Pixels, reference: Pixels) {
    let png = try TestImages.encode(try Pixels(decoding: source), as: ".png[compression=1]")
    return try results(of: source, png, change: change)
  }

  /// Returns the results of two sources as PNG.
  static func results(
    of source: [UInt8], _ reference: [UInt8],
    change: @escaping (inout Transform) -> Void = { $0.width = 120 }
  ) throws -> (made: Pixels, reference: Pixels) {
    func result(_ source: [UInt8]) throws -> Pixels {
      try Made(source) {
        $0.format = .png
        change(&$0)
      }.pixels()
    }
    return (try result(source), try result(reference))
  }

  /// Whether a source is reduced in planes.
  ///
  /// - Parameter size: The size of the upright image; `nil` for libheif's.
  static func isPlanar(_ source: [UInt8], of size: PixelSize? = nil) throws -> Bool {
    let size = try size ?? Pixels(decoding: source).size
    TestImages.start()
    return try source.withUnsafeBytes { bytes in
      let image = try HEIFImage(of: bytes)?.reduced(
        to: PixelSize(width: size.width / 2, height: size.height / 2),
        showing: PixelArea(x: 0, y: 0, size: size), of: size, profile: [],
        decoding: .init(isSmoothed: true, threads: 1))
      guard let image else { return false }
      return image.size.width == size.width / 2
    }
  }
}
