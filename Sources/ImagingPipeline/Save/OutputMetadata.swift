// Notes: what a result says beside its pixels: how an animation runs, and the source's metadata where it is kept.

import CVips
import Model

/// The times of the frames, and Exif, XMP and IPTC of the source (`strip=0`).
struct OutputMetadata: ~Copyable {
  private let header: SourceHeader
  private let frames: Int
  /// Format of the result, which decides what can be said.
  private let format: ImageFormat
  /// The opened source, which has the metadata; `nil` where that is dropped.
  private let source: Image?

  /// Reads them.
  ///
  /// - Parameters:
  ///   - bytes: The source.
  ///   - header: Its header.
  ///   - frames: Of the result.
  ///   - format: Of the result.
  ///   - isBare: Whether metadata is dropped.
  init(
    of bytes: UnsafeRawBufferPointer, header: SourceHeader, frames: Int, for format: ImageFormat,
    isBare: Bool
  ) throws(ImageError) {
    self.header = header
    self.frames = frames
    self.format = format
    let hasSome = [.jpeg, .png, .webp, .tiff, .heic, .avif].contains(header.format)
    source =
      isBare || !hasSome
      ? nil : try Loader.describe(bytes, as: header.format, failOn: header.failOn)
  }

  /// Size of one frame of an image that has all of them, one below the other.
  func frameSize(of image: borrowing Image) -> PixelSize {
    let size = image.size
    return PixelSize(width: size.width, height: size.height / frames)
  }

  /// The image with these notes and no others: the profile, texts and palette of the source are gone. Colours are sRGB by
  /// now, which is what they are taken for without a profile.
  func attached(to image: consuming Image) throws(ImageError) -> Image {
    let size = frameSize(of: image)
    let image = try image.stripped()
    if frames > 1 { image.describeAnimation(header, frames: frames, size: size) }
    switch source {
    case .some(let source): image.takeMetadata(of: source, for: format)
    case .none: break
    }
    return image
  }

  /// The image with its notes, each frame made smaller.
  func resized(_ image: borrowing Image, to size: PixelSize) throws(ImageError) -> Image {
    let copy = try image.made("copy") { pictor_vips_copy($0, $1) }
    let frameSize = frameSize(of: image)
    let small = try Animation.map(copy, frames: frames, size: frameSize) {
      frame throws(ImageError) in try frame.resized(to: size)
    }
    return try attached(to: small)
  }
}
