// Revalidations: revalidates stale variants in the background, each once.

import Model

/// The variants that are being revalidated, up to `limit`. A stale variant beyond the limit is
/// revalidated with a later request.
struct Revalidations {
  /// The maximum number of revalidations at a time.
  static let limit = 1_024

  private var variants: Set<CacheKey> = []
  /// The number of variants being revalidated, by source.
  private var sources: [CacheKey: Int] = [:]

  /// The number of running revalidations.
  var count: Int { variants.count }

  /// Reserves a slot for a variant. Returns `false` if the variant has one already or none is free.
  mutating func begin(_ key: CacheKey) -> Bool {
    guard variants.count < Self.limit, variants.insert(key).inserted else { return false }
    sources[key.source, default: 0] += 1
    return true
  }

  /// Frees the slot of a variant.
  mutating func end(_ key: CacheKey) {
    guard variants.remove(key) != nil, let count = sources[key.source] else { return }
    sources[key.source] = count > 1 ? count - 1 : nil
  }

  /// Returns whether a variant of this source is being revalidated.
  func includes(_ source: CacheKey) -> Bool { sources[source] != nil }
}

extension ImageManager {
  /// Starts a background revalidation of a stale response, unless one is running or would fail at
  /// once.
  ///
  /// The revalidation has the lowest priority until a request waits for it.
  func revalidate(_ request: ImageRequest) {
    let key = request.key
    // `only-if-cached` and other special requests start no download.
    guard request.options.cache == .normal,
      !failing.withLock({ $0.isLeftAlone(key.source, now: now()) }),
      rememberedFailure(of: request, ofLoading: true) == nil,
      revalidations.withLock({ $0.begin(key) })
    else { return }
    counts.revalidations.add()
    let own = request.revalidation
    Task(priority: .utility) {
      do throws(ImageError) {
        _ = try await variant(for: own)
      } catch {
        counts.revalidationsFailed.add()
      }
      revalidations.withLock { $0.end(key) }
    }
  }

  /// Returns the source from a running revalidation, for a request that cannot use it stale.
  /// Returns `nil` if no revalidation of the source is running.
  func revalidated(
    _ request: ImageRequest, _ share: FlightParticipant
  ) async throws(ImageError) -> LoadedSource? {
    let options = request.options
    guard options.cache == .normal, options.age == AgeDemands(), !options.isRevalidation,
      revalidations.withLock({ $0.includes(request.key.source) })
    else { return nil }
    return try await source(for: request.revalidation, share).0
  }
}

extension ImageRequest {
  /// The internal background request that renews a stale response.
  fileprivate var revalidation: ImageRequest {
    var own = self
    own.options = LoadOptions()
    own.options.store = options.store
    own.options.retriesFailed = options.retriesFailed
    own.options.priority = .low
    own.options.isDetached = true
    own.options.isRevalidation = true
    return own
  }
}
