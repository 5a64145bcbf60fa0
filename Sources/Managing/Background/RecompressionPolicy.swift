// RecompressionPolicy: decides which variants are recompressed, when, and from which request.

import Core

extension ImagingPolicy {
  /// The fewest bytes of a variant whose recompression is worth a job. Of fewer, a response's head
  /// takes as many.
  static let minimumBytes = 1_024
  /// The most pixels of an AVIF that is encoded again: 2 s of processor time. They are the most
  /// that `format=auto` makes one of (`OutputFormat`).
  static let maximumSlowPixels = 4_000_000
  /// The quality from which libheif stores colour in full. A lower one is not as like.
  private static let fullColourQuality = 90

  private var efforts: EncoderEfforts { settings.withLock { $0.efforts } }

  /// The number of hits in memory after which a variant is popular and recompressed; 0: never.
  private var hits: Int { settings.withLock { $0.recompressAfter } }

  /// Counts the hits of a variant that is about to enter memory, if it may be recompressed.
  func countHits(of variant: Variant) {
    let hits = hits
    if hits > 0, !variant.hasCountedHits, mayShrink(variant) { variant.countHits(hits) }
  }

  private func mayShrink(_ variant: Variant) -> Bool {
    guard let image = variant.info.image, case .memory(let bytes) = variant.body else {
      return false
    }
    return (ImageFormat.recompressible.contains(image.format) || needsSource(variant))
      && image.frames == 1 && bytes.count >= Self.minimumBytes && !variant.info.isRecompressed
      // A source's own bytes may have more than its pixels behind them, such as a gain map.
      && !variant.info.isSourceItself
      && !variant.info.isDamaged && variant.info.freshness.isStorable
  }

  /// Whether a variant can become smaller only if it is rendered again: a lossy image that is not
  /// its source's own bytes.
  func needsSource(_ variant: Variant) -> Bool {
    guard hits > 0, let image = variant.info.image, image.frames == 1, !variant.info.isSourceItself
    else {
      return false
    }
    switch image.format {
    case .webp: return efforts.webp < EncoderEfforts.webpRange.upperBound
    case .avif:
      return efforts.popularAVIFReduction != nil && image.size.pixels <= Self.maximumSlowPixels
    default: return false
    }
  }

  /// Returns the transform that renders a popular lossy image again: an AVIF with more effort and a
  /// lower quality is as like, in fewer bytes. `nil` if more effort gains nothing.
  func popularTransform(_ transform: Transform, for format: ImageFormat) -> Transform? {
    guard format == .avif else { return transform }
    let quality = transform.output.quality ?? transform.output.qualities[lossy: .avif]
    guard !transform.output.isLossless, transform.output.chroma == nil,
      let reduction = efforts.popularAVIFReduction, quality < Self.fullColourQuality,
      quality > reduction
    else { return nil }
    var lower = transform
    lower.output.quality = quality - reduction
    return lower
  }
}

/// The requests of variants in memory that are rendered again once they are popular. Bounded: the
/// oldest is forgotten, and its variant stays as it is.
final class RenderRequests: Sendable {
  /// The maximum number of requests; each takes about a kilobyte.
  static let limit = 2_048

  private let imaging: ImagingPolicy
  private let table = Lock(BoundedTable<CacheKey, ImageRequest>(limit: limit))

  init(imaging: ImagingPolicy) { self.imaging = imaging }

  /// Whether the request of a variant may have to be remembered.
  func mayNote(_ variant: Variant) -> Bool {
    imaging.needsSource(variant) && !variant.info.isRecompressed
  }

  /// Remembers the request of a variant that is rendered again, and of no other.
  func note(_ request: ImageRequest, of variant: Variant) {
    let transform = request.transform
    guard mayNote(variant), let format = variant.info.image?.format,
      imaging.popularTransform(transform, for: format) != nil,
      // A watermark is another source, and `maxbytes` fills its limit with any effort.
      transform.watermark == nil, transform.output.maxBytes == nil
    else { return }
    table.withLock { $0.setNewest(request, for: variant.key) }
  }

  /// Returns the request of a variant; `nil` if it is not remembered.
  func request(of key: CacheKey) -> ImageRequest? { table.withLock { $0[key] } }

  /// Forgets the request of a variant that is not rendered again any more.
  func forget(_ key: CacheKey) { table.withLock { $0[key] = nil } }
}
