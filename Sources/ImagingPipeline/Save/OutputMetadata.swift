// OutputMetadata: the animation timing and preserved metadata of a result.

import CVips
import Model

/// The frame timing, and the source's Exif, XMP and IPTC if they are kept (`strip=0`).
struct OutputMetadata: ~Copyable {
  private let header: SourceHeader
  private let frames: Int
  /// The result's format, which determines the metadata it can hold.
  private let format: ImageFormat
  /// The opened source with its metadata; `nil` if metadata is dropped.
  private let source: Image?

  /// Reads the metadata.
  ///
  /// - Parameters:
  ///   - bytes: The source.
  ///   - header: The source's header.
  ///   - frames: The frames of the result.
  ///   - format: The format of the result.
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

  /// Returns the size of one frame of an image with vertically stacked frames.
  func frameSize(of image: borrowing Image) -> PixelSize {
    let size = image.size
    return PixelSize(width: size.width, height: size.height / frames)
  }

  /// Returns the image with this metadata only, without the source's profile, texts and palette.
  /// Expects pixels in sRGB, which decoders assume without a profile.
  func attached(to image: consuming Image) throws(ImageError) -> Image {
    if frames == 1, source == nil, image.isBare { return image }
    let size = frameSize(of: image)
    let image = try image.stripped()
    if frames > 1 { image.describeAnimation(header, frames: frames, size: size, in: format) }
    switch source {
    case .some(let source): image.takeMetadata(of: source, for: format)
    case .none: break
    }
    return image
  }

  /// Returns the image with each frame resized, and with this metadata.
  func resized(_ image: borrowing Image, to size: PixelSize) throws(ImageError) -> Image {
    let copy = try image.made("copy") { pictor_vips_copy($0, $1) }
    let frameSize = frameSize(of: image)
    let small = try Animation.map(copy, frames: frames, size: frameSize) {
      frame throws(ImageError) in try frame.resized(to: size)
    }
    return try attached(to: small)
  }
}
