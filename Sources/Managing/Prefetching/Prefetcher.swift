// Prefetcher: loads lists of images into the cache ahead of requests.

import Core

/// Loads lists of images at low priority (compare SDWebImagePrefetcher). Lists take turns, and
/// within a list, hosts do.
///
/// - A cached and fresh image is skipped.
/// - An image that clients request at the same time is coalesced with those requests.
/// - An image that meets an overload is retried later and keeps its slot, so prefetching slows down
///   under load.
/// - There is no deadline for a whole image, because prefetches may wait behind all other requests.
///   Time-outs of single steps apply.
public final class Prefetcher: PrefetchOperations {
  /// The maximum number of retries after 503.
  private static let retries = 5
  /// The pause before the first retry. It doubles with each retry.
  private static let firstPause = Duration.seconds(1)

  private let provider: any ImageProvider
  private let now: @Sendable () -> ContinuousClock.Instant
  private let pause: @Sendable (Duration) async -> Void
  private let table: Lock<PrefetchTable>

  /// Creates a prefetcher without lists.
  ///
  /// - Parameters:
  ///   - endedLists: the number of ended lists whose status stays available.
  ///   - pause: sleeps for the duration, or until the calling task is cancelled.
  public init(
    provider: any ImageProvider, settings: PrefetchSettings = PrefetchSettings(),
    endedLists: Int = 64, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
    pause: @escaping @Sendable (Duration) async -> Void = { try? await Task.sleep(for: $0) }
  ) {
    self.provider = provider
    self.now = now
    self.pause = pause
    table = Lock(PrefetchTable(settings, endedLists: endedLists))
  }

  /// Replaces the limits. Lists and lines beyond them stay.
  public func apply(_ settings: PrefetchSettings) {
    table.withLock { $0.settings = settings }
    advance()
  }

  /// See `PrefetchOperations`. O(n) in the number of lines, so event loops must not call it.
  public func prefetch(_ lines: [PrefetchLine]) throws(ImageError) -> String {
    let now = now()
    let list = PrefetchList(id: RequestID().description, lines: lines, at: now)
    _ = try table.withLock { table throws(ImageError) in try table.add(list, at: now) }
    advance()
    return list.id
  }

  /// See `PrefetchOperations`.
  public func prefetches() -> [PrefetchStatus] {
    let now = now()
    return table.withLock { $0.statuses(at: now) }
  }

  /// See `PrefetchOperations`.
  public func prefetchStatus(_ id: String) -> PrefetchStatus? {
    let now = now()
    return table.withLock { $0.status(id, at: now) }
  }

  /// See `PrefetchOperations`. Running lines are cancelled, and waiting lines do not start.
  public func cancelPrefetch(_ id: String) -> Bool {
    let now = now()
    guard let (number, tasks) = table.withLock({ $0.cancel(id, at: now) }) else { return false }
    for task in tasks { task.cancel() }
    tell(number)
    return true
  }

  /// See `PrefetchOperations`. For a list that has ended, calls `observer` once, immediately.
  public func observePrefetch(
    _ id: String, observer: @escaping @Sendable (PrefetchStatus) -> Void
  ) -> Observation? {
    guard let (list, key) = table.withLock({ $0.observe(id, observer) }) else {
      guard let status = prefetchStatus(id) else { return nil }
      observer(status)
      return Observation {}
    }
    return Observation { [weak self] in
      _ = self?.table.withLock { $0.forget(key, of: list) }
    }
  }

  /// Cancels all lists and rejects new ones, when the server stops.
  public func shutDown() {
    let now = now()
    for (number, tasks) in table.withLock({ $0.shutDown(at: now) }) {
      for task in tasks { task.cancel() }
      tell(number)
    }
  }

  /// The current state, and counts since the start.
  public var figures: Figures { table.withLock { $0.figures } }
}

// MARK: - Work

extension Prefetcher {
  /// Starts lines while slots are free.
  private func advance() {
    while let turn = table.withLock({ $0.take() }) {
      // Not an immediate task: skipped lines would end at once and recurse here, deeper for each
      // line. The operator who sent the list is charged for none of it.
      let task = ImagingAccounts.$current.withValue(nil) {
        Task { end(turn, as: await outcome(of: turn.line.request)) }
      }
      if table.withLock({ $0.keep(task, for: turn) }) { task.cancel() }
    }
  }

  private func end(_ turn: PrefetchTable.Turn, as outcome: PrefetchOutcome) {
    let now = now()
    table.withLock { $0.settle(turn, as: outcome, at: now) }
    tell(turn.list)
    advance()
  }

  /// Notifies observers of pending steps, unless another thread is notifying them and will do so.
  private func tell(_ list: Int) {
    var continues = false
    while let step = table.withLock({ [continues] in $0.nextStep(of: list, continues: continues) })
    {
      for observer in step.observers { observer(step.status) }
      continues = true
    }
  }

  /// Returns the outcome of one image. Cancelling the calling task ends the wait at once.
  func outcome(of request: ImageRequest) async -> PrefetchOutcome {
    if isFresh(request) { return .skipped }
    var wait = Self.firstPause
    for _ in 0..<Self.retries {
      let (outcome, passes) = await attempt(request)
      guard passes, !Task.isCancelled else { return outcome }
      await pause(wait)
      guard !Task.isCancelled else { return outcome }
      wait *= 2
    }
    return await attempt(request).outcome
  }

  /// Returns whether memory or disk has a fresh variant of the image that is available without
  /// blocking.
  private func isFresh(_ request: ImageRequest) -> Bool {
    // `isCached` knows only that the variant is fresh. Requests with age demands need the full
    // check.
    let takesAnyAge = request.options.cache.readsCache && request.options.age == AgeDemands()
    if takesAnyAge, provider.isCached(request.key) { return true }
    return provider.deliveryAtOnce(for: request).map { !$0.cacheStatus.isBeingRenewed } ?? false
  }

  /// Returns the outcome of one attempt, and whether a retry may succeed (503). An operator who
  /// cancels all work does not end the list.
  private func attempt(_ request: ImageRequest) async -> (outcome: PrefetchOutcome, passes: Bool) {
    do throws(ImageError) {
      var status = try await provider.variant(for: request).cacheStatus
      if status.isBeingRenewed, request.options.cache == .normal {
        // Joins the background revalidation and waits for it, so the slot limits revalidations,
        // too.
        var renewal = request
        renewal.options.isRevalidation = true
        status = try await provider.variant(for: renewal).cacheStatus
      }
      switch status {
      case .hit(.memory), .hit(.disk), .staleHit(.memory, _, _), .staleHit(.disk, _, _),
        .staleIfError:
        return (.skipped, false)
      case .hit(.source), .hit(.variant), .hit(.shared), .staleHit(.source, _, _),
        .staleHit(.variant, _, _), .staleHit(.shared, _, _), .miss:
        return (.finished, false)
      }
    } catch {
      return (.failed(error), error.status == 503)
    }
  }
}

extension CacheStatus {
  /// Whether the response is stale and a revalidation is running.
  fileprivate var isBeingRenewed: Bool {
    if case .staleHit(_, .whileRevalidating, _) = self { true } else { false }
  }
}
