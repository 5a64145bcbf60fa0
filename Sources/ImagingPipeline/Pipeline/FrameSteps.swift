// FrameSteps: the processing steps of the frames between decoding and encoding.

import CVips
import Core

/// The steps from a decoded frame to one that can be encoded.
///
/// The orientation is applied after the resize, because turning the small image is cheap and only
/// that image must be in memory. The result equals that of turning first: the resize works with the
/// sides as stored.
struct FrameSteps {
  let header: SourceHeader
  let part: SourceRegion
  /// The source region in the coordinates of a loaded frame.
  let window: Window
  let geometry: Geometry
  let transform: Transform
  let output: Output
  /// The most threads that resize.
  let threads: Int
  /// The smart crop's position, once computed. The position found in the first frame of an
  /// animation applies to all frames, so that the crop does not jump.
  private(set) var place: (x: Int, y: Int)?

  /// Applies all steps to one frame.
  mutating func apply(to frame: consuming Image) throws(ImageError) -> Image {
    var image = try resized(try frame.readyForResize())
    image = try image.inSRGB(from: header.codePoints, keepsProfile: !output.profile.isEmpty)
    image = try part.orientation.apply(to: image)
    image = try cut(image)
    image = try transform.effects.apply(to: image, density: geometry.density)
    if !output.keepsAlpha && image.hasAlpha { image = try flattened(image) }
    let place = geometry.placeOrigin
    image = try placed(image, x: place.x, y: place.y, on: geometry.frame)
    if transform.sizing.angle != 0 { image = try turned(image) }
    return try placed(
      image, x: geometry.padding.left, y: geometry.padding.top, on: geometry.canvas)
  }

  /// Crops the frame to the source region and resizes it to its final size.
  private func resized(_ image: consuming Image) throws(ImageError) -> Image {
    let stored = part.orientation.swapsSides ? geometry.image.turned : geometry.image
    guard header.format == .svg else {
      return try image.resized(to: stored, showing: window, threads: threads)
    }
    let area = window.rounded(of: image.size)
    if area.size != image.size { image = try image.cut(x: area.x, y: area.y, area.size) }
    return try image.trimmed(to: stored).resized(to: stored)
  }

  /// Cuts off the parts that lie outside the frame.
  private mutating func cut(_ image: consuming Image) throws(ImageError) -> Image {
    guard geometry.isCut else { return image }
    let size = geometry.shown
    let position = transform.sizing.position
    if place == nil, transform.sizing.focalPoint == nil, position.isSmart {
      // Smart crop reads the whole image before the crop is read from it.
      image = try image.inMemory()
      // libvips says where the image begins in the part.
      let origin = try image.made(
        "smart crop", by: "smartcrop",
        "width=\(size.width),height=\(size.height),interesting=\(position.rawValue)"
      ).origin
      place = (-origin.x, -origin.y)
    }
    let origin = place ?? geometry.cutOrigin
    return try image.cut(x: origin.x, y: origin.y, size)
  }

  /// Flattens the image onto the background colour. The background's own alpha is ignored because
  /// the output has none.
  private func flattened(_ image: consuming Image) throws(ImageError) -> Image {
    let image = try image.able(toShow: transform.output.background)
    return try image.flattened(on: image.components(of: transform.output.background))
  }

  /// Pads the image to a size with the background colour.
  private func placed(
    _ image: consuming Image, x: Int, y: Int, on size: PixelSize
  ) throws(ImageError) -> Image {
    guard size != image.size else { return image }
    let color = transform.output.background
    image = try able(image, toShow: color)
    var background = image.components(of: color)
    if image.hasAlpha { background.append(Double(color.alpha)) }
    return try image.placed(x: x, y: y, on: size, background: background)
  }

  /// Turns the image by the angle of the result.
  private func turned(_ image: consuming Image) throws(ImageError) -> Image {
    let color = output.keepsAlpha ? transform.output.cornerColor : transform.output.background
    image = try able(image, toShow: color)
    return try image.turned(by: transform.sizing.angle, on: geometry.turned, color)
  }

  /// Returns the image with the bands that a colour takes.
  private func able(_ image: consuming Image, toShow color: Color) throws(ImageError) -> Image {
    let image = try image.able(toShow: color)
    return output.keepsAlpha && !image.hasAlpha && color.alpha < 255
      ? try image.withOpaqueAlpha() : image
  }
}

extension Image {
  /// Turns the image clockwise in the middle of a result of this size and colour, with linear
  /// interpolation of colours weighted by alpha, as sharp's `rotate` does.
  fileprivate consuming func turned(
    by degrees: Double, on size: PixelSize, _ color: Color
  ) throws(ImageError) -> Image {
    let hasAlpha = self.hasAlpha
    let own = self.size
    var background = components(of: color)
    if hasAlpha {
      background = background.map { $0 * Double(color.alpha) / 255 } + [Double(color.alpha)]
    }
    // Rows are read in any order.
    var image = try inMemory()
    if hasAlpha { image = try image.premultiplied() }
    let edge = 2
    image = try image.placed(
      x: edge, y: edge, on: PixelSize(width: own.width + 2 * edge, height: own.height + 2 * edge),
      background: background)
    let (cosine, sine) = degrees.cosineAndSine
    let (x, y) = (
      Double(own.width - 1) / 2 + Double(edge), Double(own.height - 1) / 2 + Double(edge)
    )
    image = try image.made(
      "turn", by: "affine",
      "matrix=\(cosine) \(-sine) \(sine) \(cosine),idx=\(-x),idy=\(-y),"
        + "odx=\(Double(size.width - 1) / 2),ody=\(Double(size.height - 1) / 2),"
        + "oarea=0 0 \(size.width) \(size.height),background=\(Self.list(background)),"
        + "premultiplied=true")
    return hasAlpha ? try image.unpremultiplied(255).roundedToBytes(by: 1) : image
  }
}

enum Animation {
  /// Applies `step` to each frame separately and stacks the results, so that pixels never bleed
  /// between neighbouring frames.
  ///
  /// Frames are read from top to bottom, once, so a sequential decoder is enough. Each frame is
  /// rendered to memory before the next begins. Otherwise libvips walks the whole pipeline for each
  /// new step, and the time grows with the cube of the frame count.
  ///
  /// - Parameters:
  ///   - roll: All frames, stacked vertically.
  ///   - frames: The number of frames; `step` receives a still image as a whole.
  static func map(
    _ roll: consuming Image, frames: Int, size: PixelSize,
    step: (consuming Image) throws(ImageError) -> Image
  ) throws(ImageError) -> Image {
    guard frames > 1 else { return try step(roll) }
    guard roll.size == PixelSize(width: size.width, height: size.height * frames) else {
      throw .undecodable(detail: "\(frames) frames of \(size) make \(roll.size)")
    }
    var done = ImageList()
    for index in 0..<frames {
      done.append(try step(try roll.cut(x: 0, y: index * size.height, size)).inMemory())
    }
    return try done.stacked()
  }
}

/// A list of images to be joined; C requires an array of their pointers.
private struct ImageList: ~Copyable {
  private var images: [UnsafeMutablePointer<VipsImage>?] = []

  /// Appends an image and takes a reference to it, which `deinit` releases.
  mutating func append(_ image: consuming Image) {
    image.withVipsImage { image in
      g_object_ref(image)
      images.append(image)
    }
  }

  /// Returns all images, stacked vertically.
  mutating func stacked() throws(ImageError) -> Image {
    let count = CInt(images.count)
    return try Image("frames") { pictor_vips_arrayjoin(&images, $0, count, 1) }
  }

  deinit {
    for image in images { pictor_g_object_unref(image) }
  }
}

extension Image {
  /// Removes all metadata: EXIF, XMP, IPTC, profile, text, palette. Expects pixels that are already
  /// in sRGB.
  consuming func stripped() throws(ImageError) -> Image {
    // `vips_copy` gives the copy its own metadata; the source's metadata is shared with other
    // readers of the image.
    let copy = try copied("metadata")
    // Built-in fields such as the width cannot be removed, so this leaves them unchanged.
    for name in copy.fields { _ = copy.withVipsImage { vips_image_remove($0, name) } }
    return copy
  }

  /// Whether the image holds several frames, stacked vertically.
  var isAnimation: Bool {
    withVipsImage { Int(vips_image_get_page_height($0)) < size.height }
  }

  /// The longest delay of a frame of a GIF, in milliseconds: 16 bits of hundredths (GIF89a, 23).
  /// libvips wraps longer ones.
  private static let longestDelayOfGIF: CInt = 655_350

  /// Sets the animation metadata: frame height, frame count, loop count and delays. The image must
  /// not share its metadata with other images (see `stripped`).
  func describeAnimation(
    _ header: SourceHeader, frames: Int, size: PixelSize, in format: ImageFormat
  ) {
    withVipsImage { image in
      vips_image_set_int(image, "page-height", CInt(size.height))
      vips_image_set_int(image, "n-pages", CInt(frames))
      vips_image_set_int(image, "loop", CInt(clamping: header.loop))
      if !header.delays.isEmpty {
        let delays = header.delays.map { format == .gif ? min($0, Self.longestDelayOfGIF) : $0 }
        vips_image_set_array_int(image, "delay", delays, CInt(delays.count))
      }
    }
  }
}
