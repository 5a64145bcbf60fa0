// PassingPolicy: decides which requests and which images may be passed through.

import Model
import Synchronization

/// Which sources may be passed through.
public struct PassingPolicy: Sendable {
  /// The allowed formats.
  public var formats: Set<ImageFormat>
  /// The maximum number of pixels in one frame. All copies share it, so that a reload reaches them.
  public var maximumPixels: Int {
    get { pixels.value.load(ordering: .relaxed) }
    nonmutating set { pixels.value.store(newValue, ordering: .relaxed) }
  }

  private final class Pixels: Sendable {
    let value: Atomic<Int>

    init(_ value: Int) { self.value = Atomic(value) }
  }

  private let pixels: Pixels

  /// Creates the policy: formats that are both decoded and produced.
  public init(_ settings: ImagingSettings = ImagingSettings()) {
    formats = Set(ImageFormat.outputs).intersection(settings.formats)
    pixels = Pixels(settings.maximumPixels)
  }

  /// Returns the format in which a source can be passed through, or `nil` if the transform asks for
  /// any change.
  func format(for transform: Transform) -> ImageFormat? {
    guard let format = transform.output.format, formats.contains(format) else { return nil }
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
  func allows(_ size: PixelSize, for transform: Transform) -> Bool {
    // Divides instead of multiplying, because the product of untrusted sides could overflow.
    size.height <= min(transform.sizing.limitBytes / 4, maximumPixels) / size.width
  }
}
