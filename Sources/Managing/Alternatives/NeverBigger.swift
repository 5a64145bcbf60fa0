// NeverBigger: a source that is no larger than what was made of it, and as good, goes out in its place.

import Model

extension ImageManager {
  /// The source itself as the variant, where nobody could tell it from what was made of it but by its fewer bytes: of the
  /// same size in pixels, in a format that will do, upright, in sRGB, and with nothing in it but what is to be seen.
  ///
  /// Unlike one that is passed through it is kept in both tiers, since after a restart nobody would know that it is the
  /// answer before another had been made.
  func source(
    _ source: Source, insteadOf image: ProcessedImage, for request: ImageRequest
  ) async -> Variant? {
    let transform = request.transform
    guard !image.isDamaged, source.version != 0, source.file.count <= image.bytes.count,
      source.file.count <= transform.maxBytes ?? .max,
      image.scaledDownFrom == nil, transform.leavesPixels,
      // Never mapped: a file in a folder may be cut. What was made of it is larger, and in memory.
      let bytes = await bytes(of: source.file)
    else { return nil }
    let format = bytes.withUnsafeBytes { bytes -> ImageFormat? in
      guard let format = FormatSigns.format(of: bytes), passing.formats.contains(format),
        transform.takes(format),
        PassThroughCheck.read(bytes, as: format) == .plain(image.size),
        TrailingDataCheck.isClean(bytes, as: format)
      else { return nil }
      return format
    }
    guard let format else { return nil }
    makings.sourcesInstead.add()
    var info = VariantInfo(
      passingThrough: format, image.size, source.origin, source.freshness, version: source.version,
      generation: source.generation, density: image.density)
    info.frames = image.frames
    return Variant(key: request.key, info: info, body: .memory(bytes))
  }
}

extension Transform {
  /// Whether a result of the source's own size shows the source as it is stored.
  fileprivate var leavesPixels: Bool { keepsPixels && rotation == .none && flip == .none }
}
