// Alternatives: equivalent images that are smaller than a rendered one, and the alias of a
// negotiated one.

import Core

extension ImageManager {
  /// Returns the cached variant in the fallback format in place of an AVIF, if the AVIF is not
  /// smaller.
  func smallerFallback(
    than image: ProcessedImage, for request: ImageRequest, source: Source, watermark: Source?
  ) async -> Variant? {
    guard let fallback = parts.imaging.replaceableFallback(for: request),
      let found = await parts.cache.variant(for: fallback.key), found.isRendered(from: source),
      found.info.watermarkVersion == watermark?.version ?? 0,
      found.body.count <= image.body.count
    else { return nil }
    return await parts.files.copy(
      of: found, as: request.key, freshness: source.freshness.combined(with: watermark))
  }

  /// Returns the source in place of a rendered image, if it is no larger and looks the same. The
  /// source needs the same pixel size, an accepted format, upright orientation, sRGB and no
  /// metadata.
  ///
  /// Both tiers store this variant, unlike one that is passed through. Otherwise a restart would
  /// lose the decision and encode the image again.
  func smallerOriginal(
    than result: ProcessedImage, for request: ImageRequest, source: Source
  ) async -> Variant? {
    let transform = request.transform
    guard let image = result.rendered, source.version != 0,
      source.file.count <= result.body.count,
      source.file.count <= transform.output.maxBytes ?? .max,
      image.scaledDownFrom == nil, transform.keepsStoredPixels,
      // Copies the bytes: another process may truncate a mapped file.
      let (bytes, body) = await parts.files.bytesAndBody(of: source.file),
      let format = format(of: bytes, insteadOf: image, transform: transform)
    else { return nil }
    parts.substitutions.sourcesInstead.add()
    let own = RenderedImage(
      format: format, size: image.size, frames: image.frames, density: image.density)
    return Variant(
      key: request.key, info: VariantInfo(passingThrough: own, of: source), body: body)
  }

  /// Returns the format of a source that looks like the rendered image, otherwise `nil`.
  private func format(
    of bytes: ImageBytes, insteadOf image: RenderedImage, transform: Transform
  ) -> ImageFormat? {
    bytes.withUnsafeBytes { bytes in
      guard let format = FormatSigns.format(of: bytes), parts.imaging.passes(format),
        transform.takes(format),
        PassThroughCheck.read(bytes, as: format) == .plain(image.size),
        TrailingDataCheck.isClean(bytes, as: format)
      else { return nil }
      return format
    }
  }

  /// See `ImageProvider`. It is for redirected clients.
  public func keepNamed(_ variant: Variant, of request: ImageRequest) async {
    guard let image = variant.info.image else { return }
    let named = request.naming(image.format)
    let entries = await parts.cache.lookUp(named.key)
    let isCached = [entries.memory, entries.disk].contains {
      $0?.freshness.isFresh(at: parts.now()) == true
    }
    guard !isCached, variant.info.freshness.isStorable,
      let alias = await parts.files.copy(of: lasting(variant, of: request), as: named.key)
    else { return }
    parts.cache.store(alias, in: request.options.store, for: request.options.demand())
  }

  /// Returns the fallback's own variant if `variant` is a short-lived copy of it, instead of an
  /// AVIF.
  private func lasting(_ variant: Variant, of request: ImageRequest) -> Variant {
    guard let fallback = parts.imaging.fallback(for: request),
      let own = parts.cache.inMemory(fallback.key), own.info.etag == variant.info.etag,
      own.info.freshness.lifetime > variant.info.freshness.lifetime
    else { return variant }
    return own
  }
}

final class SubstitutionCounters: Sendable {
  /// Sources served because the encoded image was larger.
  let sourcesInstead = Counter(
    "sources_instead", "pictor_sources_served_instead_total",
    "Results replaced by smaller sources.")
  let derived = Counter(
    "derived", "pictor_variants_derived_total", "Variants derived from larger ones.")
  let avifs = Counter(
    "avifs_later", "pictor_deferred_avifs_encoded_total", "AVIFs encoded in the background.")
  let avifsFailed = Counter(
    "avifs_failed", "pictor_deferred_avifs_failed_total", "AVIFs that failed in the background.")
}
