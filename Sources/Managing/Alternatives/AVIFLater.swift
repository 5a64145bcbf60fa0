// AVIFLater: AVIF without waiting: another format now, and the AVIF behind its back for whoever asks later.

import Model

/// Whether negotiated AVIFs are waited for.
public struct AVIFPolicy: Sendable {
  /// Whether a quicker format is the answer until there is one.
  public var isLater = true
  /// How many are made behind quicker answers at the same time: they leave workers for what is waited for.
  public var atOnce = 1

  /// The defaults.
  public init() {}
}

extension ImageManager {
  /// For how many seconds caches are told to keep the answer that stands in for an AVIF: about as long as one is made.
  static let quickLifetime = 30

  /// The request that is answered in place of one that would have to wait for an AVIF: the one of a client that does not
  /// take AVIF, so that both have one variant. `nil` where there is none to wait for, or nobody waits.
  ///
  /// Neither is there where the answer may not stay on disk: the AVIF's source would have to be loaded once more, or the AVIF
  /// be kept nowhere.
  func quicker(_ request: ImageRequest) -> ImageRequest? {
    guard avifPolicy.isLater, !request.options.awaitsAVIF, !request.options.isRevalidation,
      request.options.store.contains(.disk)
    else { return nil }
    return request.withoutAVIF
  }

  /// The quicker answer, and the beginning of the better one.
  ///
  /// - Parameter held: the source, where it was loaded already.
  func stepIn(
    for request: ImageRequest, _ quick: ImageRequest, _ share: FlightParticipant,
    of held: SourceLease?
  ) async throws(ImageError) -> MadeVariant {
    let (made, joined) = try await variantFlights.value(
      for: FlightKey(quick), share: share
    ) { share async throws(ImageError) in try await self.findOrMake(quick, share, of: held) }
    let status = joined ? made.status.collapsed : made.status
    // An animation comes out the same under both keys: no AVIF that is made here moves.
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

  /// The quicker answer from memory while the better one is made, or could not be; never waits.
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

  /// What was made already for those who do not take AVIF, where an AVIF came out no smaller; `nil`: it did.
  func quickImage(
    insteadOf image: ProcessedImage, of source: Source, _ watermark: Source?,
    for request: ImageRequest
  ) async -> Variant? {
    guard avifPolicy.isLater, request.options.awaitsAVIF || request.options.isRevalidation,
      // Of two that fill the same room, the larger is none the worse.
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

  /// Tells whether it failed in a way that it would again.
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
  /// The same from a client that does not take AVIF; `nil` where AVIF is not what would be negotiated.
  fileprivate var withoutAVIF: ImageRequest? {
    guard transform.format == nil, transform.accepted.first == .avif,
      transform.product == .image
    else { return nil }
    return accepting(Array(transform.accepted.dropFirst()))
  }

  /// The manager's own request, in the place of one that was answered in another format.
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
