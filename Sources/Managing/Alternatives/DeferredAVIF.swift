// DeferredAVIF: answers with the fallback format and encodes the AVIF in the background.

import Model
import Platform
import Telemetry

/// Answers requests whose AVIF is not cached, and encodes the AVIFs later.
final class DeferredAVIF: Sendable {
  /// The freshness lifetime of a fallback response, in seconds: about as long as an AVIF takes to
  /// encode.
  static let placeholderLifetime = 30

  private let policy: AVIFPolicy
  private let queue: Lock<DeferredAVIFQueue>
  private let cache: VariantCache
  private let files: FileReader
  private let validity: EntryValidity
  private let counters: SubstitutionCounters
  private let now: @Sendable () -> UnixTime

  init(
    policy: AVIFPolicy, cache: VariantCache, files: FileReader, validity: EntryValidity,
    counters: SubstitutionCounters, now: @escaping @Sendable () -> UnixTime
  ) {
    self.policy = policy
    queue = Lock(DeferredAVIFQueue(atOnce: policy.atOnce))
    self.cache = cache
    self.files = files
    self.validity = validity
    self.counters = counters
    self.now = now
  }

  /// Returns the fallback of a request whose AVIF is pending or has failed. Never waits.
  func pendingFallback(for request: ImageRequest) -> ImageRequest? {
    guard queue.withLock({ $0.knows(request.key, now: now()) }) else { return nil }
    return policy.fallback(for: request)
  }

  /// Returns the response to a request from its fallback, and schedules the AVIF.
  ///
  /// - Parameters:
  ///   - delivery: the response in the fallback format.
  ///   - encode: performs the request for an AVIF.
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
      let same = await files.copy(of: fallback, as: request.key)
    {
      cache.store(
        same, in: isStorable ? request.options.store : [], for: request.options.demand())
      return VariantResult(variant: same, status: status, timings: timings, work: work)
    }
    if request.options.cache != .only, isStorable { schedule(request, encode: encode) }
    return VariantResult(
      variant: placeholder(fallback, for: request), status: status, timings: timings, work: work)
  }

  /// Returns a fallback variant under the key of the AVIF, with a short lifetime. No tier stores it.
  func placeholder(_ fallback: Variant, for request: ImageRequest) -> Variant {
    var info = fallback.info
    info.freshness = info.freshness.ending(within: Self.placeholderLifetime, of: now())
    return Variant(key: request.key, info: info, body: fallback.body)
  }

  /// The AVIFs queued or being encoded in the background.
  var waiting: Int { queue.withLock { $0.count } }

  private func schedule(
    _ request: ImageRequest,
    encode: @escaping @Sendable (ImageRequest) async throws(ImageError) -> Void
  ) {
    let item = DeferredAVIFQueue.Item(
      request: request.awaitingAVIF, generation: validity.generation)
    guard let first = queue.withLock({ $0.add(item, now: now()) }) else { return }
    // The task also encodes what other clients ask for, so it works for none of them.
    ImagingAccounts.$current.withValue(nil) {
      _ = Task(priority: .utility) {
        var next: DeferredAVIFQueue.Item? = first
        while let item = next {
          let isFailure = await perform(item, encode: encode)
          next = queue.withLock { $0.end(item, isFailure: isFailure, now: now()) }
        }
      }
    }
  }

  /// Encodes an AVIF and returns whether it failed permanently.
  private func perform(
    _ item: DeferredAVIFQueue.Item,
    encode: @Sendable (ImageRequest) async throws(ImageError) -> Void
  ) async -> Bool {
    guard !validity.isPurged(item.request.key, since: item.generation) else { return false }
    do throws(ImageError) {
      try await encode(item.request)
      counters.avifs.add()
      return false
    } catch {
      counters.avifsFailed.add()
      switch error.cause {
      case .overloaded, .outOfMemory, .cancelled, .revoked, .draining: return false
      default: return true
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
}
