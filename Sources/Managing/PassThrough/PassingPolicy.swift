// PassingPolicy: decides which requests and which images may be passed through.

import Core

extension ImagingPolicy {
  /// The maximum number of pixels in one frame.
  private var maximumPixels: Int { settings.withLock { $0.maximumPixels } }

  /// Whether sources of a format may be passed through.
  func passes(_ format: ImageFormat) -> Bool {
    ImageFormat.outputs.contains(format) && settings.withLock { $0.formats.contains(format) }
  }

  /// Returns the format in which a source can be passed through, or `nil` if the transform asks for
  /// any change.
  func passedFormat(for transform: Transform) -> ImageFormat? {
    guard let format = transform.output.format, passes(format) else { return nil }
    var plain = Transform()
    plain.output.format = format
    plain.output.isProgressive = true
    // These parameters do not affect an image that keeps its size.
    plain.sizing.limitBytes = transform.sizing.limitBytes
    plain.sizing.enlarge = transform.sizing.enlarge
    plain.output.background = transform.output.background
    plain.output.qualities = transform.output.qualities
    return transform == plain ? format : nil
  }

  /// Returns whether an image of `size` is within the limits of pixels and of memory.
  func passes(_ size: PixelSize, for transform: Transform) -> Bool {
    // Divides instead of multiplying, because the product of untrusted sides could overflow.
    size.height <= min(transform.sizing.limitBytes / 4, maximumPixels) / size.width
  }
}
