// Animation: processes the frames of an animation, stacked vertically by libvips.

import CVips
import Model

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
  ///   - size: The size of one frame.
  ///   - step: The processing of one frame.
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
    let copy = try made("metadata") { pictor_vips_copy($0, $1) }
    copy.withVipsImage { image in
      guard let names = vips_image_get_fields(image) else { return }
      defer { g_strfreev(names) }
      var next = names
      while let name = next.pointee {
        // Built-in fields such as the width cannot be removed, so this call leaves them unchanged.
        vips_image_remove(image, name)
        next += 1
      }
    }
    return copy
  }

  /// Whether the image holds several frames, stacked vertically.
  var isAnimation: Bool {
    withVipsImage { Int(vips_image_get_page_height($0)) < size.height }
  }

  /// The longest delay of a frame of a GIF, in milliseconds: 16 bits of hundredths (GIF89a, 23). libvips wraps longer ones.
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
