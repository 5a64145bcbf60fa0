// Revalidations: asking origins behind stale answers, once however many are given meanwhile.

import Model

/// The revalidations that run. Pure, and bounded: beyond that, what is stale stays so until there is room.
struct Revalidations {
  /// Most at once.
  static let limit = 1_024

  private var variants: Set<CacheKey> = []
  /// How many variants of each source.
  private var sources: [CacheKey: Int] = [:]

  /// How many run.
  var count: Int { variants.count }

  /// Takes a place for a variant; `false` where it has one already, or there is none.
  mutating func begin(_ key: CacheKey) -> Bool {
    guard variants.count < Self.limit, variants.insert(key).inserted else { return false }
    sources[key.source, default: 0] += 1
    return true
  }

  /// Gives its place back.
  mutating func end(_ key: CacheKey) {
    guard variants.remove(key) != nil, let count = sources[key.source] else { return }
    sources[key.source] = count > 1 ? count - 1 : nil
  }

  /// Whether a variant of this source is being renewed.
  func includes(_ source: CacheKey) -> Bool { sources[source] != nil }
}

extension ImageManager {
  /// Has what was served stale renewed, unless that is under way, or would be in vain.
  ///
  /// Its place in the queues is the last, until somebody waits for it.
  func revalidate(_ request: ImageRequest) {
    let key = request.key
    // Who wants only what is kept has nothing loaded.
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

  /// The source from the revalidation that is under way, for a request that cannot have it stale; `nil` where there is
  /// none.
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
  /// The manager's own request, for what this one was given stale.
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
