// RecompressionPolicy: decides which variants are recompressed, and when.

import Model

/// Which variants are made smaller, and after how many hits.
public struct RecompressionPolicy: Sendable {
  /// The number of hits in memory after which a variant is popular; 0: never.
  let hits: Int
  /// Whether a WebP is rendered again with more effort.
  private let includesWebP: Bool
  /// The fewest bytes of a variant whose recompression is worth a job. Of fewer, a response's head takes as many.
  static let minimumBytes = 1_024

  /// Creates a policy.
  public init(_ settings: ImagingSettings = ImagingSettings()) {
    hits = settings.recompressAfter
    includesWebP = settings.efforts.webp < EncoderEfforts.webpRange.upperBound
  }

  /// Counts the hits of a variant that is about to enter memory, if it may be recompressed.
  func count(_ variant: Variant) {
    if hits > 0, !variant.hasCountedHits, applies(to: variant) { variant.countHits(hits) }
  }

  private func applies(to variant: Variant) -> Bool {
    guard let image = variant.info.image, case .memory(let bytes) = variant.body else {
      return false
    }
    return (ImageFormat.recompressible.contains(image.format) || needsSource(variant))
      && image.frames == 1 && bytes.count >= Self.minimumBytes && !variant.info.isRecompressed
      // A source's own bytes may have more than its pixels behind them, such as a gain map.
      && !variant.info.isSourceItself
      && !variant.info.isDamaged && variant.info.freshness.isStorable
  }

  /// Whether a variant can become smaller only if it is rendered again: a lossy image that is not its
  /// source's own bytes.
  func needsSource(_ variant: Variant) -> Bool {
    hits > 0 && includesWebP && variant.info.image?.format == .webp
      && variant.info.image?.frames == 1 && !variant.info.isSourceItself
  }
}
