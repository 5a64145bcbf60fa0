// Recompressor: decides which variants are popular, and makes them smaller in the background.

import Core

/// Recompresses popular variants while imaging workers are idle, one at a time, and replaces them
/// in both tiers. See docs/decisions/026-encoder-defaults.md.
final class Recompressor: Sendable {
  /// How many variants may wait.
  static let limit = 256

  /// A variant to recompress. Its bytes are looked up when its turn comes, so the queue holds none.
  private struct Item: Sendable {
    let key: CacheKey
    /// The entity tag, which tells whether memory still has the same bytes.
    let etag: EntityTag
  }

  private let parts: ManagerParts
  private let worker: BackgroundWorker<Item>
  private let counters = RecompressionCounters()

  init(_ parts: ManagerParts) {
    self.parts = parts
    worker = BackgroundWorker(atOnce: 1, limit: Self.limit, now: parts.now)
  }

  /// Queues a variant that has become popular. Never blocks.
  func add(_ variant: Variant) {
    let item = Item(key: variant.key, etag: variant.info.etag)
    let isKept = worker.add(item, for: item.key) { [self] item in
      let end = await perform(item)
      if case .done = end { parts.requests.forget(item.key) }
      return end
    }
    // Without a place, the variant has to become popular again.
    if !isKept { parts.imaging.countHits(of: variant) }
  }

  /// Recompressed variants since the start.
  var figures: Figures {
    var figures = counters.figures
    figures.add(
      "waiting", worker.count, "pictor_recompressions_waiting",
      "Variants queued or recompressed now.")
    return figures
  }

  /// Recompresses a variant, or notes in both tiers that it stays as it is.
  private func perform(_ item: Item) async -> BackgroundQueue<Item>.End {
    // A variant that is not on disk would lose its mark with a restart: passed-through sources, and
    // what requests keep from the disk.
    guard let variant = current(item), await isOnDisk(item) else { return .done }
    let image: ProcessedImage
    do throws(ImageError) {
      guard let job = try await job(for: variant) else { return .done }
      image = try await parts.processor.process(job)
      counters.note(image.processorTime)
      guard try await isCurrent(job, of: variant) else { return .done }
    } catch {
      switch error.cause {
      case .cancelled, .overloaded, .sourceTimeout:
        return .delayed(orElse: { [imaging = parts.imaging, variant = current(item)] in
          if let variant { imaging.countHits(of: variant) }
        })
      case .draining, .revoked: return .done
      default:
        counters.failed.add()
        _ = parts.cache.exchange(variant) { $0.recompressed(as: nil) }
        return .done
      }
    }
    let isSmaller = variant.isSame(as: image) && image.body.count < variant.body.count
    // The exchange fails if the variant was purged, replaced or evicted meanwhile.
    guard parts.cache.exchange(variant, { $0.recompressed(as: isSmaller ? image : nil) }) else {
      return .done
    }
    if isSmaller {
      counters.note(before: variant.body.count, after: image.body.count)
    } else {
      counters.unchanged.add()
    }
    return .done
  }

  /// The variant in memory, if it still has the same bytes.
  private func current(_ item: Item) -> Variant? {
    parts.cache.inMemory(item.key).flatMap { $0.info.etag == item.etag ? $0 : nil }
  }

  private func isOnDisk(_ item: Item) async -> Bool {
    guard case .variant(let info) = await parts.cache.lookUp(item.key).disk?.stored else {
      return false
    }
    return info.etag == item.etag
  }

  // MARK: Jobs

  /// Returns the job for a variant; `nil` if there is no room for its bytes, or if its source is
  /// not at hand any more. Downloads nothing.
  ///
  /// - Throws: `overloaded` or `sourceTimeout` if a disk does not answer at present, `cancelled`.
  private func job(for variant: Variant) async throws(ImageError) -> ImageJob? {
    guard let format = variant.info.image?.format else { return nil }
    guard ImageFormat.recompressible.contains(format) else { return try await rendering(variant) }
    guard let file = variant.file(parts.storage) else { return nil }
    var transform = Transform()
    // The format that the answer must have.
    transform.output.format = format
    return ImageJob(
      file: file, transform: transform, density: 1, client: variant.key.variation,
      isRecompression: true, isBackground: true)
  }

  /// Returns whether the result of a job shows the variant's source. A local file may have been
  /// overwritten while the job waited or ran.
  private func isCurrent(_ job: ImageJob, of variant: Variant) async throws(ImageError) -> Bool {
    guard job.hasMoreEffort else { return true }
    // Without its request, which may be forgotten meanwhile, the source is unknown.
    guard let url = parts.requests.request(of: variant.key)?.source else { return false }
    guard url.scheme == .local else { return true }
    return try await localFile(at: url, of: variant) != nil
  }

  /// Returns the job that renders a lossy image again with more effort. A source in the same format
  /// may have lent it its own pixels, which an encoder would only lose.
  private func rendering(_ variant: Variant) async throws(ImageError) -> ImageJob? {
    guard let request = parts.requests.request(of: variant.key),
      let file = try await source(of: variant, at: request.source),
      let beginning = await parts.files.beginning(of: file, upTo: FormatSigns.limit),
      let format = beginning.withUnsafeBytes({ FormatSigns.format(ofSource: $0) }),
      let own = variant.info.image?.format, format != own,
      let transform = parts.imaging.popularTransform(request.transform, for: own)
    else { return nil }
    return ImageJob(
      file: file, transform: transform, density: request.source.density,
      source: SourceIdentity(key: variant.key.source, version: variant.info.sourceVersion),
      client: variant.key.variation, hasMoreEffort: true, isBackground: true)
  }

  /// Returns the source that a variant was rendered from, if it is at hand: in the disk tier, or a
  /// local file that has not changed.
  private func source(of variant: Variant, at url: SourceURL) async throws(ImageError)
    -> FileRegion?
  {
    guard url.scheme != .local else { return try await localFile(at: url, of: variant) }
    let stored = await parts.store.source(for: variant.key.source)
    return stored.flatMap { variant.isRendered(from: $0) ? $0.file : nil }
  }

  /// Returns the local file that a variant was rendered from; `nil` if it is gone or has changed.
  private func localFile(at url: SourceURL, of variant: Variant) async throws(ImageError)
    -> FileRegion?
  {
    do throws(ImageError) {
      guard case .fetched(let download) = try await parts.loader.load(LoadRequest(url: url)) else {
        return nil
      }
      return variant.isRendered(fromVersion: download.version) ? download.file : nil
    } catch {
      switch error.cause {
      case .overloaded, .sourceTimeout, .cancelled: throw error
      default: return nil
      }
    }
  }
}

extension Variant {
  /// Whether a worker's result is an image of the same kind.
  fileprivate func isSame(as image: ProcessedImage) -> Bool {
    guard let own = info.image, let other = image.rendered else { return false }
    return own.format == other.format && own.size == other.size && own.frames == other.frames
      && !image.report.isDamaged
  }

  /// Returns the variant with the mark of a recompression.
  ///
  /// - Parameter image: the image with fewer bytes; `nil` if the bytes stay.
  fileprivate func recompressed(as image: ProcessedImage?) -> Variant {
    var info = info
    info.isRecompressed = true
    if let image { info.etag = image.report.etag }
    return Variant(key: key, info: info, body: image?.body ?? body)
  }
}

final class RecompressionCounters: Sendable {
  private let smaller = Counter(
    "smaller", "pictor_recompressions_total", "Recompressed variants, by result.",
    ["result": "smaller"])
  let unchanged = Counter(
    "unchanged", "pictor_recompressions_total", "Variants that could not become smaller.",
    ["result": "unchanged"])
  let failed = Counter(
    "failed", "pictor_recompressions_total", "Variants whose recompression failed.",
    ["result": "failed"])
  private let before = Counter(
    "bytes_before", "pictor_recompressed_bytes_total", "Bytes of variants that became smaller.",
    ["time": "before"])
  private let after = Counter(
    "bytes_after", "pictor_recompressed_bytes_total", "Bytes of the smaller variants.",
    ["time": "after"])
  private let microseconds = Counter()

  /// Counts a variant that became smaller, with its bytes.
  func note(before: Int, after: Int) {
    smaller.add()
    self.before.add(before)
    self.after.add(after)
  }

  func note(_ time: Duration) { microseconds.add(Int(time / .microseconds(1))) }

  /// The counts since the start.
  var figures: Figures {
    var figures = Figures(of: self)
    figures.add(
      "processor_seconds", Double(microseconds.value) / 1e6,
      "pictor_recompression_processor_seconds_total",
      "Processor time of workers that recompressed variants.")
    return figures
  }
}

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
