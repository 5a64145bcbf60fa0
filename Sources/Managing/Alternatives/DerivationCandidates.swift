// DerivationCandidates: which variants of a source a smaller one could be made from.

import Model

/// What is known of larger variants. Pure, and bounded; what it lists may have left both tiers.
struct DerivationCandidates {
  /// A variant that is good enough to make others from.
  struct Candidate: Equatable {
    let key: CacheKey
    let transform: Transform
    let size: PixelSize
  }

  /// Most of one source, and most sources.
  static let limitPerSource = 4
  static let limit = 2_048

  private var sources: [CacheKey: [Candidate]] = [:]
  /// In the order in which they came, a ring of those that are listed and some that have gone.
  private var order: [CacheKey] = []
  private var oldest = 0

  /// How many sources have any.
  var count: Int { sources.count }

  /// Lists a variant, if others may be made from it. What came last is looked at first.
  mutating func note(_ variant: Variant, _ transform: Transform) {
    guard transform.isSourceOfOthers(variant.info) else { return }
    let key = variant.key.source
    let candidate = Candidate(key: variant.key, transform: transform, size: variant.info.size)
    var listed = sources[key] ?? []
    if listed.last == candidate { return }
    listed.removeAll { $0.key == candidate.key }
    listed.append(candidate)
    if listed.count > Self.limitPerSource { listed.removeFirst() }
    if sources[key] == nil { enter(key) }
    sources[key] = listed
  }

  /// What a request could be made from, with what is then to be made of it, the smallest first: it costs least.
  func candidates(for request: ImageRequest) -> [(candidate: Candidate, rest: Transform)] {
    (sources[request.key.source] ?? []).compactMap { candidate in
      request.transform.rest(after: candidate.transform, of: candidate.size).map { (candidate, $0) }
    }.sorted { $0.candidate.size.width < $1.candidate.size.width }
  }

  /// Takes one off the list that is not there any more.
  mutating func remove(_ key: CacheKey) {
    let source = key.source
    sources[source]?.removeAll { $0.key == key }
    if sources[source]?.isEmpty == true { sources[source] = nil }
  }

  private mutating func enter(_ key: CacheKey) {
    guard order.count >= Self.limit else { return order.append(key) }
    sources[order[oldest]] = nil
    order[oldest] = key
    oldest = (oldest + 1) % Self.limit
  }
}

extension Transform {
  /// Least lossy quality of what others are made from.
  private static let leastQuality = 90

  /// Whether what was made so may be made smaller once more in place of its source: it shows all there is, or a part that is
  /// told exactly, lost nothing that an image of half its size could show, and has no more pixels than its source.
  fileprivate func isSourceOfOthers(_ info: VariantInfo) -> Bool {
    guard info.frames == 1, info.scaledDownFrom == nil, !enlarge, keepsShape, isBare else {
      return false
    }
    return switch info.format {
    // With either of them its colours may be fewer.
    case .png: quality == nil && maxBytes == nil
    case .jpeg, .webp, .avif, .jxl:
      (info.quality ?? quality ?? qualities[info.format] ?? 0) >= Self.leastQuality
        && (maxBytes == nil || info.quality != nil)
    default: false
    }
  }

  /// Whether the image is neither cut, padded nor stretched by its box.
  private var keepsShape: Bool { fit == .inside || fit == .outside }

  /// Whether nothing is done to the pixels that would be done twice.
  private var isBare: Bool { product == .image && effects == Effects() && watermark == nil }

  /// What is to be made of a larger variant so that this comes out; `nil`: it cannot be, or not for sure.
  ///
  /// The worker sees the larger variant's sides, which were rounded. So it has to be certain that the source's own would give
  /// the same size; and the box has to be given, since `scale` alone counts in the source's pixels.
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

  /// The size in pixels of what this makes of an image with these sides, give or take half a pixel each; `nil` where that
  /// is not the same for all such images.
  private func certainSize(of size: PixelSize) -> PixelSize? {
    let (width, height) = (Double(size.width), Double(size.height))
    guard let flat = self.size(of: width + 0.5, height - 0.5),
      let tall = self.size(of: width - 0.5, height + 0.5), flat == tall
    else { return nil }
    return flat
  }

  /// As `ImagingPipeline.Geometry` has it where nothing grows.
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
