// PrefetchRunner: prefetches one image and retries while the server is overloaded.

import Model

/// Requests images from the manager for a prefetch list.
struct PrefetchRunner: Sendable {
  /// The maximum number of retries after 503.
  private static let retries = 5
  /// The pause before the first retry. It doubles with each retry.
  private static let firstPause = Duration.seconds(1)

  let provider: any ImageProvider
  /// Sleeps for the duration, or until the task is cancelled.
  let pause: @Sendable (Duration) async -> Void

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
