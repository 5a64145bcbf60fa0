// DerivationCandidates: lists cached variants that smaller variants can be derived from.

import Core

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

  var count: Int { sources.count }

  /// Adds a variant if others can be derived from it. The newest candidate of a source comes last.
  mutating func note(_ variant: Variant, of transform: Transform) {
    guard let image = variant.info.image, transform.isSourceOfOthers(image),
      image.format != .png || !variant.body.hasPalette
    else { return }
    let key = variant.key.source
    let candidate = Candidate(key: variant.key, transform: transform, size: image.size)
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

extension Variant.Body {
  /// Whether the pixels of this PNG are indices of a palette, for which colours may have been lost.
  /// A file that would have to be waited for counts as one.
  fileprivate var hasPalette: Bool {
    // The colour type in `IHDR` (PNG, third edition, 11.2.1).
    let place = 25
    switch self {
    case .memory(let bytes):
      return bytes.withUnsafeBytes { $0.count > place && $0[place] == 3 }
    case .file(let region):
      var type: UInt8 = 0
      let access = FileAccess()
      let read = region.isInMemory ? access.read : access.readAtOnce
      let count = withUnsafeMutableBytes(of: &type) {
        read(region.descriptor, $0, region.offset + place)
      }
      return count != 1 || type == 3
    }
  }
}

extension Transform {
  /// The minimum quality of a lossy candidate.
  private static let leastQuality = 90

  /// Whether smaller variants can be derived from this result. It shows the whole source or an
  /// exactly known crop, has enough quality, and is not enlarged.
  fileprivate func isSourceOfOthers(_ image: RenderedImage) -> Bool {
    guard image.frames == 1, image.droppedFrames == 0, image.scaledDownFrom == nil, isPlainImage,
      sizing.keepsShape, !sizing.enlarge
    else { return false }
    guard let usual = output.qualities[image.format] else {
      return image.format == .png && output.quality == nil && output.maxBytes == nil
    }
    return (image.quality ?? output.quality ?? usual) >= Self.leastQuality
      && (output.maxBytes == nil || image.quality != nil)
  }

  /// Returns the transform that turns a larger variant into this result, or `nil` if no exact one
  /// exists.
  ///
  /// The imaging worker sees the rounded size of the larger variant. So the result's size must be
  /// the same for every source size that rounds to it. The request needs `width` or `height`,
  /// because `scale` alone is relative to the source.
  fileprivate func rest(after larger: Transform, of size: PixelSize) -> Transform? {
    guard isPlainImage, larger.selection == selection, output.isDerivable(from: larger.output),
      let result = sizing.certainSize(of: size),
      size.width >= 2 * result.width, size.height >= 2 * result.height,
      4 * result.width * result.height <= sizing.limitBytes
    else { return nil }
    var rest = self
    rest.selection = Selection()
    return rest
  }
}

extension Sizing {
  /// Returns the output size for an input of `size`, or `nil` if rounding of the input (±0.5
  /// pixels) could change it.
  fileprivate func certainSize(of size: PixelSize) -> PixelSize? {
    guard keepsShape || fit == .fill && !hasLeastSide && !isExtended && isOfBox,
      let box = SizeBox(self)
    else {
      return nil
    }
    let width = Double(size.width)
    let height = Double(size.height)
    let flat = box.imageSize(width: width + 0.5, height: height - 0.5)
    let tall = box.imageSize(width: width - 0.5, height: height + 0.5)
    return flat == tall ? flat : nil
  }
}
