// Revalidator: revalidates stale variants in the background, each once.

import Core

/// The variants that are being revalidated, up to `limit`. A stale variant beyond the limit is
/// revalidated with a later request.
struct Revalidations {
  /// The maximum number of revalidations at a time, a quarter of the default `imaging.queue_limit`:
  /// behind busy workers each waits with its source, at low priority, and clients' jobs need the
  /// places.
  static let limit = 256

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

struct Revalidator: Sendable {
  private let running = Lock(Revalidations())
  let staleness: Staleness
  let failures: NegativeCache
  let counters: FreshnessCounters

  /// Starts a background revalidation of a stale response, unless one is running or would fail at
  /// once.
  ///
  /// The revalidation has the lowest priority until a request waits for it.
  func start(
    _ request: ImageRequest,
    work: @escaping @Sendable (ImageRequest) async throws(ImageError) -> Void
  ) {
    let key = request.key
    // `only-if-cached` and other special requests start no download.
    guard request.options.cache == .normal, !staleness.isInBackoff(key.source),
      failures.failure(of: request, at: .loading) == nil,
      running.withLock({ $0.begin(key) })
    else { return }
    counters.revalidations.add()
    let own = request.revalidation
    // No client waits for it, so none is charged.
    ImagingAccounts.$current.withValue(nil) {
      _ = Task(priority: .utility) {
        do throws(ImageError) {
          try await work(own)
        } catch {
          counters.revalidationsFailed.add()
        }
        running.withLock { $0.end(key) }
      }
    }
  }

  /// Returns the request of a running revalidation of the source, or `nil` if none is running or
  /// `request` cannot use its result.
  func runningRequest(for request: ImageRequest) -> ImageRequest? {
    let options = request.options
    guard options.cache == .normal, options.age == AgeDemands(), !options.isRevalidation,
      running.withLock({ $0.includes(request.key.source) })
    else { return nil }
    return request.revalidation
  }

  /// Stale responses and revalidations since the start.
  var figures: Figures {
    var figures = Figures(of: counters)
    figures.add(
      "revalidating", running.withLock { $0.count }, "pictor_revalidations_running",
      "Background revalidations that run.")
    figures.add(
      "failing_sources", staleness.failingCount, "pictor_failing_sources",
      "Sources in back-off because their origin failed.")
    return figures
  }
}

extension ImageRequest {
  /// The internal background request that renews a stale response.
  fileprivate var revalidation: ImageRequest {
    var own = self
    own.options = LoadOptions()
    own.options.store = options.store
    own.options.isFreeForm = options.isFreeForm
    own.options.retriesFailed = options.retriesFailed
    own.options.priority = .low
    own.options.isDetached = true
    own.options.isRevalidation = true
    return own
  }
}

final class FreshnessCounters: Sendable {
  let revalidations = Counter(
    "revalidations", "pictor_revalidations_started_total", "Background revalidations started.")
  let revalidationsFailed = Counter(
    "revalidations_failed", "pictor_revalidations_failed_total",
    "Background revalidations that failed.")
  /// Cached sources with a receive time in the future, because the clock was set back.
  let clockSetBack = Counter(
    "clock_set_back", "pictor_sources_from_future_total",
    "Sources found with a time ahead of the clock.")
  /// RFC 5861's stale-while-revalidate.
  private let whileRevalidating = Counter(
    "stale_while_revalidate", "pictor_stale_responses_total", "Stale responses, by reason.",
    ["reason": "while_revalidate"])
  /// RFC 5861's stale-if-error.
  private let ifError = Counter(
    "stale_if_error", "pictor_stale_responses_total", "Stale responses for failed origins.",
    ["reason": "if_error"])
  private let accepted = Counter(
    "max_stale", "pictor_stale_responses_total", "Stale responses that the request accepted.",
    ["reason": "max_stale"])

  /// Counts a response if it is stale.
  func add(_ status: CacheStatus) {
    switch status {
    case .staleHit(_, .whileRevalidating, _): whileRevalidating.add()
    case .staleHit(_, .ifError, _), .staleIfError: ifError.add()
    case .staleHit(_, .accepted, _): accepted.add()
    case .hit, .miss: break
    }
  }
}
