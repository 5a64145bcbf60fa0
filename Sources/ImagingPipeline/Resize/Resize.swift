// Resize: making an image exactly as large as the geometry says.

import CVips
import Model

extension Image {
  /// A part of it, at another size: exactly this one.
  ///
  /// A part whose edges lie within pixels is shown as it is where the image is made smaller, to the hundredth of a pixel;
  /// in all other cases it is the whole pixels next to it.
  consuming func resized(to target: PixelSize, showing window: Window) throws(ImageError) -> Image {
    let covered = window.covered(of: size)
    let isExact = Window(covered.size).isClose(to: window.within(covered))
    let canBeExact =
      isReducible && target.pixels <= Self.mostReducedPixels
      && Double(target.width) <= window.width && Double(target.height) <= window.height
    guard !isExact && canBeExact else {
      let area = isExact ? covered : window.rounded(of: size)
      if area.size == size { return try resized(to: target) }
      return try cut(x: area.x, y: area.y, area.size).resized(to: target)
    }
    let part = try cut(x: covered.x, y: covered.y, covered.size)
    return try part.reduced(to: target, showing: window.within(covered))
  }

  /// It, at another size: exactly this one, with Lanczos3.
  ///
  /// Colours are weighted by alpha meanwhile, or the colour of what is transparent would shine through at edges.
  consuming func resized(to target: PixelSize) throws(ImageError) -> Image {
    let size = self.size
    if size == target { return self }
    if isReducible && target.width <= size.width && target.height <= size.height
      && target.pixels <= Self.mostReducedPixels
    {
      return try reduced(to: target, showing: Window(size))
    }
    guard hasAlpha else { return try resample(from: size, to: target) }
    let (format, full) = (self.format, fullAlpha)
    var image = try made("alpha") { pictor_vips_premultiply($0, $1, full) }
    // Back to whole numbers where there are enough of them, which takes two thirds of the time. Of 8 bits a faint alpha
    // leaves its colours three or four, and they would come out as others.
    if format != VIPS_FORMAT_UCHAR { image = try image.cast(to: format) }
    image = try image.resample(from: size, to: target)
    image = try image.made("alpha") { pictor_vips_unpremultiply($0, $1, full) }
    return format == VIPS_FORMAT_UCHAR
      ? try image.roundedToBytes(by: 1) : try image.cast(to: format)
  }

  /// More pixels than these are not held in memory but resized by libvips, a strip at a time: of a result so large a part
  /// may be all that is kept.
  static let mostReducedPixels = 16_000_000

  /// Whether the resampler knows what its numbers mean.
  private var isReducible: Bool {
    format == VIPS_FORMAT_UCHAR
      && [VIPS_INTERPRETATION_sRGB, VIPS_INTERPRETATION_B_W].contains(interpretation)
      && bands <= (isGrey ? 2 : 4)
  }

  /// A part of it, no larger on either side, in memory; of its metadata only the colour profile is left.
  private consuming func reduced(
    to target: PixelSize, showing window: Window
  ) throws(ImageError) -> Image {
    let result = try Image(blank: target, bands: bands, profile: foreignProfile)
    try Resampler(of: self, to: target, showing: window).run { y, bytes throws(ImageError) in
      try result.write(bytes, row: y)
    }
    return result
  }

  /// A vector that was rendered within a pixel of the wanted size (libvips takes one factor for both sides) gets its
  /// last row or column repeated or cut; resampling for that would blur it.
  consuming func trimmed(to target: PixelSize) throws(ImageError) -> Image {
    let size = self.size
    guard size != target, abs(size.width - target.width) <= 1, abs(size.height - target.height) <= 1
    else { return self }
    return try made("trim") {
      pictor_vips_embed_edges($0, $1, 0, 0, CInt(target.width), CInt(target.height))
    }
  }

  /// What an opaque pixel has as its alpha.
  var fullAlpha: Double {
    switch interpretation {
    case VIPS_INTERPRETATION_RGB16, VIPS_INTERPRETATION_GREY16: 65_535
    case VIPS_INTERPRETATION_scRGB: 1
    default: 255
    }
  }

  /// Resized by libvips: made smaller with Lanczos3, larger with a bicubic interpolation; colours with an alpha come weighted
  /// by it.
  func resample(from size: PixelSize, to target: PixelSize) throws(ImageError) -> Image {
    let less = PixelSize(
      width: min(size.width, target.width), height: min(size.height, target.height))
    // Both factors are given: with one, libvips computes the other side, and rounds it its own way.
    var image = try made("resize") {
      pictor_vips_resize(
        $0, $1, Double(less.width) / Double(size.width),
        Double(less.height) / Double(size.height), VIPS_KERNEL_LANCZOS3)
    }
    if less != target {
      // Not by vips_resize: of 8.14.1 it moves what it enlarges by half a pixel of the result to the right and down.
      image = try image.made("resize") {
        pictor_vips_enlarge($0, $1, CInt(target.width), CInt(target.height), "bicubic")
      }
    }
    guard image.size == target else {
      throw .internal(detail: "resized \(size) to \(image.size) instead of \(target)")
    }
    return image
  }
}
