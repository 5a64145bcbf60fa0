// Recompressor: makes popular variants smaller in the background.

import Model
import Platform
import Telemetry

/// Recompresses popular variants while imaging workers are idle, one at a time, and replaces them in
/// both tiers. See docs/decisions/026-encoder-defaults.md.
final class Recompressor: Sendable {
  private let policy: RecompressionPolicy
  private let queue = Lock(RecompressionQueue())
  private let cache: VariantCache
  private let processor: any ImageProcessor
  private let jobs: RecompressionJobs
  private let counters = RecompressionCounters()

  init(
    policy: RecompressionPolicy, cache: VariantCache, processor: any ImageProcessor,
    jobs: RecompressionJobs
  ) {
    self.policy = policy
    self.cache = cache
    self.processor = processor
    self.jobs = jobs
  }

  /// Queues a variant that has become popular. Never blocks.
  func add(_ variant: Variant) {
    let item = RecompressionQueue.Item(key: variant.key, etag: variant.info.etag)
    let (isKept, start) = queue.withLock { $0.add(item) }
    // Without a place, the variant has to become popular again.
    guard isKept else { return policy.count(variant) }
    guard let start else { return }
    // No client waits for it, so none is charged.
    ImagingAccounts.$current.withValue(nil) {
      _ = Task(priority: .utility) {
        var next: RecompressionQueue.Item? = start
        while let item = next { next = await end(item, perform(item)) }
      }
    }
  }

  /// Recompressed variants since the start.
  var figures: Figures {
    var figures = counters.figures
    figures.add(
      "waiting", queue.withLock { $0.count }, "pictor_recompressions_waiting",
      "Variants queued or recompressed now.")
    return figures
  }

  private func end(
    _ item: RecompressionQueue.Item, _ end: RecompressionQueue.End
  ) -> RecompressionQueue.Item? {
    if end == .done { jobs.forget(item.key) }
    let variant = end == .delayed ? current(item) : nil
    return queue.withLock { queue in
      let (next, isDropped) = queue.end(item, end)
      // In the same step: hits after the item has left the queue count.
      if isDropped, let variant { policy.count(variant) }
      return next
    }
  }

  /// Recompresses a variant, or notes in both tiers that it stays as it is.
  private func perform(_ item: RecompressionQueue.Item) async -> RecompressionQueue.End {
    // A variant that is not on disk would lose its mark with a restart: passed-through sources, and what
    // requests keep from the disk.
    guard let variant = current(item), await isOnDisk(item) else { return .done }
    let image: ProcessedImage
    do throws(ImageError) {
      guard let job = try await jobs.job(for: variant) else { return .done }
      image = try await processor.process(job)
      counters.note(image.processorTime)
      guard try await jobs.isCurrent(job, of: variant) else { return .done }
    } catch {
      switch error.cause {
      case .cancelled, .overloaded, .sourceTimeout: return .delayed
      case .draining, .revoked: return .done
      default:
        counters.failed.add()
        _ = cache.exchange(variant) { $0.recompressed(as: nil) }
        return .done
      }
    }
    let isSmaller = variant.isSame(as: image) && image.body.count < variant.body.count
    // The exchange fails if the variant was purged, replaced or evicted meanwhile.
    guard cache.exchange(variant, { $0.recompressed(as: isSmaller ? image : nil) }) else {
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
  private func current(_ item: RecompressionQueue.Item) -> Variant? {
    cache.inMemory(item.key).flatMap { $0.info.etag == item.etag ? $0 : nil }
  }

  private func isOnDisk(_ item: RecompressionQueue.Item) async -> Bool {
    guard case .variant(let info) = await cache.lookUp(item.key).disk?.stored else { return false }
    return info.etag == item.etag
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
