// Animation: the frames of an animation, which libvips keeps one below the other in one tall image.

import CVips
import Model

enum Animation {
  /// Treats each frame by itself and puts them together again, so that no frame's pixels bleed into the next one's.
  ///
  /// Frames are read from top to bottom, once: a decoder that gives rows in order is enough. Each is made whole before
  /// the next is begun: libvips walks over everything that hangs on the roll for each further step, so that hundreds of
  /// frames at once take time by the cube of their number.
  ///
  /// - Parameters:
  ///   - roll: All frames, one below the other.
  ///   - frames: How many; a still is passed through as a whole.
  ///   - size: Size of one.
  ///   - step: What is done with each.
  static func map(
    _ roll: consuming Image, frames: Int, size: PixelSize,
    _ step: (consuming Image) throws(ImageError) -> Image
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

/// Images on their way into one; C wants their pointers side by side.
private struct ImageList: ~Copyable {
  private var images: [UnsafeMutablePointer<VipsImage>?] = []

  /// Adds one, with a reference of its own: given back by `deinit`.
  mutating func append(_ image: consuming Image) {
    image.withVipsImage { image in
      g_object_ref(image)
      images.append(image)
    }
  }

  /// All of them, one below the other.
  mutating func stacked() throws(ImageError) -> Image {
    let count = CInt(images.count)
    return try Image("frames") { pictor_vips_arrayjoin(&images, $0, count, 1) }
  }

  deinit {
    for image in images { pictor_g_object_unref(image) }
  }
}

extension Image {
  /// The same pixels without any metadata: no EXIF, XMP, IPTC, profile, text, palette. Colours are sRGB by now.
  consuming func stripped() throws(ImageError) -> Image {
    // A copy has metadata of its own; those of the source's image are shared with whoever still reads from it.
    let copy = try made("metadata") { pictor_vips_copy($0, $1) }
    copy.withVipsImage { image in
      guard let names = vips_image_get_fields(image) else { return }
      defer { g_strfreev(names) }
      var next = names
      while let name = next.pointee {
        // The fields that are not metadata, such as the width, stay: they cannot be removed.
        vips_image_remove(image, name)
        next += 1
      }
    }
    return copy
  }

  /// Says on an image of its own (`stripped`) that it is an animation, how long its frames stay and how often it runs.
  func describeAnimation(_ header: SourceHeader, frames: Int, size: PixelSize) {
    withVipsImage { image in
      vips_image_set_int(image, "page-height", CInt(size.height))
      vips_image_set_int(image, "n-pages", CInt(frames))
      vips_image_set_int(image, "loop", CInt(clamping: header.loop))
      if !header.delays.isEmpty {
        vips_image_set_array_int(image, "delay", header.delays, CInt(header.delays.count))
      }
    }
  }
}
