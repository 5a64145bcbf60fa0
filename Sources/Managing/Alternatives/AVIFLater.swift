// AVIFLater: answers in a faster format and encodes the AVIF in the background.

import Model

/// The policy for responses to clients that negotiate AVIF.
public struct AVIFPolicy: Sendable {
  /// Whether a request without a cached AVIF is answered in a faster format first.
  public var isLater: Bool
  /// How many AVIFs are encoded in the background at a time. Foreground work needs the other
  /// imaging workers.
  public var atOnce: Int

  /// Creates the policy for a number of imaging workers, at least 1. Half of them stay free for jobs
  /// that a request waits for.
  public init(_ settings: ImagingSettings = ImagingSettings(), workers: Int = 2) {
    isLater = settings.defersAVIF
    atOnce = workers / 2
  }
}

extension ImageManager {
  /// The freshness lifetime of a fallback response, in seconds: about as long as an AVIF takes to
  /// encode.
  static let quickLifetime = 30

  /// Returns the fallback request for a request that would wait for an AVIF, or `nil` if no
  /// fallback applies.
  ///
  /// The fallback equals the request of a client that does not accept AVIF, so both share one
  /// variant. There is no fallback if the request may not use the disk tier: the AVIF would need a
  /// second download, or could not be stored.
  func quicker(_ request: ImageRequest) -> ImageRequest? {
    guard avifPolicy.isLater, !request.options.awaitsAVIF, !request.options.isRevalidation,
      request.options.store.contains(.disk)
    else { return nil }
    return request.withoutAVIF
  }

  /// Serves the fallback format and schedules the AVIF.
  ///
  /// - Parameter held: the source, if it is already loaded.
  func stepIn(
    for request: ImageRequest, _ quick: ImageRequest, _ share: FlightParticipant,
    of held: SourceLease?
  ) async throws(ImageError) -> MadeVariant {
    let (made, joined) = try await variantFlights.value(
      for: FlightKey(quick), share: share
    ) { share async throws(ImageError) in try await self.findOrMake(quick, share, of: held) }
    let status = joined ? made.status.collapsed : made.status
    // Pictor makes no animated AVIF, so an animation is the same image under both keys.
    if made.variant.info.frames > 1, let same = await copy(of: made.variant, as: request.key) {
      _ = store(same, in: storable(request, same.info.freshness))
      return MadeVariant(variant: same, status: status, timings: made.timings)
    }
    if request.options.cache != .only, made.variant.info.freshness.isStorable {
      makeLater(request)
    }
    return MadeVariant(
      variant: standIn(made.variant, for: request), status: status, timings: made.timings)
  }

  /// Returns the fallback from memory while the AVIF is pending or after it failed. Never waits.
  func quickDelivery(for request: ImageRequest) -> ImageDelivery? {
    guard backlog.withLock({ $0.knows(request.key, now: now()) }),
      let quick = quicker(request), let variant = memory.peek(quick.key), isRight(variant),
      let use = use(of: variant.info.freshness, by: quick)
    else { return nil }
    let status = status(of: use, variant.info.freshness, from: .memory, to: quick)
    counts.add(status)
    return ImageDelivery(
      variant: standIn(variant, for: request), cacheStatus: status, timings: Timings())
  }

  /// Returns the cached fallback if the AVIF is not smaller, otherwise `nil`.
  func quickImage(
    insteadOf image: ProcessedImage, of source: Source, _ watermark: Source?,
    for request: ImageRequest
  ) async -> Variant? {
    guard avifPolicy.isLater, request.options.awaitsAVIF || request.options.isRevalidation,
      // With `maxBytes`, both formats fill the same budget, so a smaller file is not better.
      request.transform.maxBytes == nil, let quick = request.withoutAVIF
    else { return nil }
    var found = memory.peek(quick.key)
    if found == nil { found = await disk.variant(for: quick.key) }
    guard let found, isRight(found), source.version != 0,
      found.info.sourceVersion == source.version,
      found.info.watermarkVersion == watermark?.version ?? 0,
      found.body.count <= image.bytes.count
    else { return nil }
    return await copy(
      of: found, as: request.key, freshness: source.freshness.combined(with: watermark))
  }

  private func storable(_ request: ImageRequest, _ freshness: Freshness) -> StoreTiers {
    freshness.isStorable ? request.options.store : []
  }

  private func standIn(_ variant: Variant, for request: ImageRequest) -> Variant {
    var info = variant.info
    info.freshness = info.freshness.ending(within: Self.quickLifetime, of: now())
    return Variant(key: request.key, info: info, body: variant.body)
  }

  private func makeLater(_ request: ImageRequest) {
    let item = DeferredAVIFQueue.Item(request: request.awaitingAVIF, generation: purges.generation)
    guard let first = backlog.withLock({ $0.add(item, now: now()) }) else { return }
    Task(priority: .utility) {
      var next: DeferredAVIFQueue.Item? = first
      while let item = next {
        let isFailure = await make(item)
        next = backlog.withLock { $0.end(item, isFailure: isFailure, now: now()) }
      }
    }
  }

  /// Encodes an AVIF and returns whether it failed permanently.
  private func make(_ item: DeferredAVIFQueue.Item) async -> Bool {
    guard !purges.covers(item.request.key, generation: item.generation) else { return false }
    do throws(ImageError) {
      _ = try await variant(for: item.request)
      makings.avifs.add()
      return false
    } catch {
      makings.avifsFailed.add()
      switch error.cause {
      case .overloaded, .outOfMemory, .cancelled, .revoked, .draining: return false
      default: return true
      }
    }
  }
}

extension ImageRequest {
  /// The request of a client that does not accept AVIF, or `nil` if AVIF is not the preferred
  /// format.
  fileprivate var withoutAVIF: ImageRequest? {
    guard transform.format == nil, transform.accepted.first == .avif,
      transform.product == .image
    else { return nil }
    return accepting(Array(transform.accepted.dropFirst()))
  }

  /// The internal background request for the AVIF of a request that was answered in another format.
  fileprivate var awaitingAVIF: ImageRequest {
    var own = self
    own.options = LoadOptions()
    own.options.store = options.store
    own.options.priority = .low
    own.options.isDetached = true
    own.options.awaitsAVIF = true
    return own
  }
}
