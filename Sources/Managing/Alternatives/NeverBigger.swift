// NeverBigger: serves the source if re-encoding does not make it smaller.

import Model

extension ImageManager {
  /// Returns the source as the variant if it is no larger than the encoded image and looks the
  /// same. The source needs the same pixel size, an accepted format, upright orientation, sRGB and
  /// no metadata.
  ///
  /// Both tiers store this variant, unlike one that is passed through. Otherwise a restart would
  /// lose the decision and encode the image again.
  func source(
    _ source: Source, insteadOf image: ProcessedImage, for request: ImageRequest
  ) async -> Variant? {
    let transform = request.transform
    guard !image.isDamaged, source.version != 0, source.file.count <= image.bytes.count,
      source.file.count <= transform.maxBytes ?? .max,
      image.scaledDownFrom == nil, transform.leavesPixels,
      // Copies the bytes: another process may truncate a mapped file. The encoded image is larger
      // and is in memory already.
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
  /// Whether an output of the source's size has the stored pixels of the source.
  fileprivate var leavesPixels: Bool { keepsPixels && rotation == .none && flip == .none }
}
