// Pipeline+Recompression: makes a finished variant smaller without changing a pixel.

import ImagingWire
import Model

extension Pipeline {
  /// Encodes a variant again with more effort, from its own bytes and without changing a pixel.
  ///
  /// - Parameters:
  ///   - variant: The bytes of a JPEG or PNG. They must not change until this function returns.
  ///   - limits: What may be decoded, and the memory and time of a job.
  ///   - admits: Called with the estimated cost. If it returns `false`, the job ends with
  ///     `ImageError.cancelled`.
  /// - Returns: The smaller image, or the variant's own bytes if they cannot be fewer.
  /// - Throws: `ImageError.unsupportedFormat`, `.undecodable`, `.tooManyPixels` or `.tooCostly`.
  public func recompress(
    _ variant: UnsafeRawBufferPointer, limits: ImagingLimits,
    admits: (JobCost) -> Bool = { _ in true }
  ) throws(ImageError) -> EncodedImage {
    defer { VipsLibrary.tidyUp() }
    var watch = StageWatch()
    let format = try Sniffer.format(of: variant, allowed: ImageFormat.recompressible)
    let size = try Loader.describe(variant, as: format, failOn: .warning).size
    guard size.pixels <= limits.maximumPixels else {
      throw .tooManyPixels(pixels: size.pixels, limit: limits.maximumPixels)
    }
    let cost = JobCost(recompressing: size, as: format)
    try cost.check(limits)
    guard admits(cost) else { throw .cancelled }
    let smaller =
      format == .jpeg ? JPEGRecompression.smaller(variant) : PNGRecompression.smaller(variant)
    let encoded = Encoded(
      bytes: try GLibBytes(copying: smaller ?? Array(variant)), size: size, quality: nil)
    try encoded.check(as: format)
    watch.finish(\.encode)
    return EncodedImage(
      bytes: encoded.bytes,
      content: .image(RenderedImage(format: format, size: size, density: 1)),
      timings: watch.timings)
  }
}
