// DerivationCandidates: lists cached variants that smaller variants can be derived from.

import Model
import Platform

/// A bounded list of larger variants. Both cache tiers may have evicted a listed variant.
struct DerivationCandidates {
  /// A variant with enough quality to derive others from.
  struct Candidate: Equatable {
    let key: CacheKey
    let transform: Transform
    let size: PixelSize
  }

  /// The maximum number of candidates for each source, and of sources.
  static let limitPerSource = 4
  static let limit = 2_048

  private var sources = BoundedTable<CacheKey, [Candidate]>(limit: Self.limit)

  /// The number of sources with candidates.
  var count: Int { sources.count }

  /// Adds a variant if others can be derived from it. The newest candidate of a source comes last.
  mutating func note(_ variant: Variant, _ transform: Transform) {
    guard transform.isSourceOfOthers(variant.info) else { return }
    let key = variant.key.source
    let candidate = Candidate(key: variant.key, transform: transform, size: variant.info.size)
    var listed = sources[key] ?? []
    if listed.last == candidate { return }
    listed.removeAll { $0.key == candidate.key }
    listed.append(candidate)
    if listed.count > Self.limitPerSource { listed.removeFirst() }
    sources[key] = listed
  }

  /// Returns the candidates for a request with the remaining transform for each. The smallest
  /// candidate comes first, because it costs least.
  func candidates(for request: ImageRequest) -> [(candidate: Candidate, rest: Transform)] {
    (sources[request.key.source] ?? []).compactMap { candidate in
      request.transform.rest(after: candidate.transform, of: candidate.size).map { (candidate, $0) }
    }.sorted { $0.candidate.size.width < $1.candidate.size.width }
  }

  /// Removes a candidate that the cache no longer has.
  mutating func remove(_ key: CacheKey) {
    let source = key.source
    sources[source]?.removeAll { $0.key == key }
    if sources[source]?.isEmpty == true { sources[source] = nil }
  }
}

extension Transform {
  /// The minimum quality of a lossy candidate.
  private static let leastQuality = 90

  /// Whether smaller variants can be derived from this result. It shows the whole source or an
  /// exactly known crop, has enough quality, and is not enlarged.
  fileprivate func isSourceOfOthers(_ info: VariantInfo) -> Bool {
    guard info.frames == 1, info.scaledDownFrom == nil, !enlarge, keepsShape, isBare else {
      return false
    }
    return switch info.format {
    // A PNG with a quality or a byte limit may have a reduced palette.
    case .png: quality == nil && maxBytes == nil
    case .jpeg, .webp, .avif, .jxl:
      (info.quality ?? quality ?? qualities[info.format] ?? 0) >= Self.leastQuality
        && (maxBytes == nil || info.quality != nil)
    default: false
    }
  }

  /// Whether the fit neither crops, pads nor stretches.
  private var keepsShape: Bool { fit == .inside || fit == .outside }

  /// Whether no step would be applied to the pixels twice.
  private var isBare: Bool { product == .image && effects == Effects() && watermark == nil }

  /// Returns the transform that turns a larger variant into this result, or `nil` if no exact one
  /// exists.
  ///
  /// The imaging worker sees the rounded size of the larger variant. So the result's size must be
  /// the same for every source size that rounds to it. The request needs `width` or `height`,
  /// because `scale` alone is relative to the source.
  fileprivate func rest(after larger: Transform, of size: PixelSize) -> Transform? {
    guard larger.format == nil || larger.format == format, larger.background == background,
      larger.crop == crop, larger.rotation == rotation, larger.flip == flip, larger.trim == trim,
      larger.frame == frame, larger.isAnimated == isAnimated, stripsMetadata, isBare,
      let result = certainSize(of: size),
      size.width >= 2 * result.width, size.height >= 2 * result.height,
      4 * result.width * result.height <= limitBytes
    else { return nil }
    var rest = self
    (rest.crop, rest.rotation, rest.flip, rest.trim, rest.frame) = (nil, .none, .none, nil, nil)
    return rest
  }

  /// Returns the output size for an input of `size`, or `nil` if rounding of the input (±0.5
  /// pixels) could change it.
  private func certainSize(of size: PixelSize) -> PixelSize? {
    let (width, height) = (Double(size.width), Double(size.height))
    guard let flat = self.size(of: width + 0.5, height - 0.5),
      let tall = self.size(of: width - 0.5, height + 0.5), flat == tall
    else { return nil }
    return flat
  }

  /// Computes the output size like `ImagingPipeline.Geometry`, without enlarging.
  private func size(of sourceWidth: Double, _ sourceHeight: Double) -> PixelSize? {
    func side(_ exact: Double) -> Int { max(1, Int(exact.rounded())) }
    let box = (
      width: width.map { side(Double($0) * (scale ?? 1)) },
      height: height.map { side(Double($0) * (scale ?? 1)) }
    )
    let factor: Double
    let (x, y) = (
      box.width.map { Double($0) / sourceWidth }, box.height.map { Double($0) / sourceHeight }
    )
    switch (fit, x, y)
    {
    case (.fill, _?, _?):
      return box.width.flatMap { width in
        box.height.map { PixelSize(width: width, height: $0) }
      }
    case (.inside, let x?, let y?): factor = min(x, y)
    case (.outside, let x?, let y?): factor = max(x, y)
    case (.inside, let one?, nil), (.outside, let one?, nil), (.inside, nil, let one?),
      (.outside, nil, let one?):
      factor = one
    default: return nil
    }
    return PixelSize(width: side(sourceWidth * factor), height: side(sourceHeight * factor))
  }
}
