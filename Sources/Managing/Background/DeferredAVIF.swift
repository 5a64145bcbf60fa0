// DeferredAVIF: answers with the fallback format and encodes the AVIF in the background.

import Core

extension ImagingPolicy {
  /// Whether a request without a cached AVIF is answered in a faster format first.
  private var defersAVIF: Bool { settings.withLock { $0.defersAVIF } }

  /// Returns the fallback request for a request that would wait for an AVIF, or `nil` if no
  /// fallback applies.
  ///
  /// The fallback equals the request of a client that does not accept AVIF, so both share one
  /// variant. There is no fallback if the request may not use the disk tier: the AVIF would need a
  /// second download, or could not be stored.
  func fallback(for request: ImageRequest) -> ImageRequest? {
    guard defersAVIF, !request.options.awaitsAVIF, !request.options.isRevalidation,
      request.options.store.contains(.disk)
    else { return nil }
    return request.withoutAVIF
  }

  /// Returns the fallback request whose variant may replace the AVIF that a background request has
  /// rendered, or `nil` if the AVIF stays in any case.
  func replaceableFallback(for request: ImageRequest) -> ImageRequest? {
    guard defersAVIF, request.options.awaitsAVIF || request.options.isRevalidation,
      // With `maxBytes`, both formats fill the same budget, so a smaller file is not better.
      request.transform.output.maxBytes == nil
    else { return nil }
    return request.withoutAVIF
  }
}

/// Answers requests whose AVIF is not cached, and encodes the AVIFs later.
final class DeferredAVIF: Sendable {
  /// The freshness lifetime of a fallback response, in seconds: about as long as an AVIF takes to
  /// encode.
  static let placeholderLifetime = 30

  /// How many AVIFs may wait. Further ones are dropped until the next request asks again.
  static let limit = 1_024

  private struct Item: Sendable {
    let request: ImageRequest
    /// The number of the last purge at the time of the request. A later purge of the image cancels
    /// the item.
    let generation: Int
  }

  private let parts: ManagerParts
  private let worker: BackgroundWorker<Item>

  /// - Parameter workers: the number of imaging workers. Half of them stay free for jobs that a
  ///   request waits for.
  init(_ parts: ManagerParts, workers: Int) {
    self.parts = parts
    worker = BackgroundWorker(atOnce: workers / 2, limit: Self.limit, now: parts.now)
  }

  /// Returns the fallback of a request whose AVIF is pending or has failed. Never waits.
  func pendingFallback(for request: ImageRequest) -> ImageRequest? {
    worker.knows(request.key) ? parts.imaging.fallback(for: request) : nil
  }

  /// Returns the response to a request from its fallback, and schedules the AVIF.
  func response(
    to request: ImageRequest, with delivery: ImageDelivery,
    encode: @escaping @Sendable (ImageRequest) async throws(ImageError) -> Void
  ) async -> VariantResult {
    let (status, timings) = (delivery.cacheStatus, delivery.timings)
    let work = delivery.work ?? SharedWork()
    let fallback = delivery.variant
    let isStorable = fallback.info.freshness.isStorable
    // Pictor makes no animated AVIF, so an animation is the same image under both keys.
    if let image = fallback.info.image, image.frames > 1,
      let same = await parts.files.copy(of: fallback, as: request.key)
    {
      parts.cache.store(
        same, in: isStorable ? request.options.store : [], for: request.options.demand())
      return VariantResult(variant: same, status: status, timings: timings, work: work)
    }
    if request.options.cache != .only, isStorable { schedule(request, encode: encode) }
    return VariantResult(
      variant: placeholder(fallback, for: request), status: status, timings: timings, work: work)
  }

  /// Returns a fallback variant under the key of the AVIF, with a short lifetime. No tier stores
  /// it.
  func placeholder(_ fallback: Variant, for request: ImageRequest) -> Variant {
    var info = fallback.info
    info.freshness = info.freshness.ending(within: Self.placeholderLifetime, of: parts.now())
    return Variant(key: request.key, info: info, body: fallback.body)
  }

  /// The AVIFs queued or being encoded in the background.
  var waiting: Int { worker.count }

  private func schedule(
    _ request: ImageRequest,
    encode: @escaping @Sendable (ImageRequest) async throws(ImageError) -> Void
  ) {
    let item = Item(request: request.awaitingAVIF, generation: parts.validity.generation)
    worker.add(item, for: request.key) { [self] in await perform($0, encode: encode) }
  }

  private func perform(
    _ item: Item, encode: @Sendable (ImageRequest) async throws(ImageError) -> Void
  ) async -> BackgroundQueue<Item>.End {
    guard !parts.validity.isPurged(item.request.key, since: item.generation) else { return .done }
    do throws(ImageError) {
      try await encode(item.request)
      parts.substitutions.avifs.add()
      return .done
    } catch {
      parts.substitutions.avifsFailed.add()
      switch error.cause {
      case .overloaded, .outOfMemory, .cancelled, .revoked, .draining: return .done
      default: return .failed
      }
    }
  }
}

extension ImageRequest {
  /// The internal background request for the AVIF of a request that was answered in another format.
  fileprivate var awaitingAVIF: ImageRequest {
    var own = self
    own.options = LoadOptions()
    own.options.store = options.store
    own.options.isFreeForm = options.isFreeForm
    own.options.priority = .low
    own.options.isDetached = true
    own.options.awaitsAVIF = true
    return own
  }

  /// The request of a client that does not accept AVIF, or `nil` if AVIF is not the preferred
  /// format.
  fileprivate var withoutAVIF: ImageRequest? {
    guard transform.leavesFormatOpen, transform.output.accepted.first == .avif else { return nil }
    return accepting(Array(transform.output.accepted.dropFirst()))
  }
}
