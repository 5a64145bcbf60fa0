// PrefetchRunner: the way of one line: is it there already, ask for it, ask again where that failed for lack of room.

import Model

/// Asks the manager for images on behalf of nobody in particular.
struct PrefetchRunner: Sendable {
  /// How often an image is tried again that there was no room for.
  private static let retries = 5
  /// How long after the first such failure; twice as long after each further one.
  private static let firstPause = Duration.seconds(1)

  let provider: any ImageProvider
  /// Waits for so long, or until the task is cancelled.
  let pause: @Sendable (Duration) async -> Void

  /// How one image ended. Cancelling the calling task ends it at once.
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

  /// Whether the image can be had at once, and as it is, from memory or from disk.
  private func isFresh(_ request: ImageRequest) -> Bool {
    // What memory holds is fresh, which is all that is known of its age; the rest weighs the request's demands.
    let takesAnyAge = request.options.cache.looks && request.options.age == AgeDemands()
    if takesAnyAge, provider.isCached(request.key) { return true }
    return provider.deliveryAtOnce(for: request).map { !$0.cacheStatus.isBeingRenewed } ?? false
  }

  /// How one try ended, and whether that passes by itself (503): there was no room, or an operator ended all that was
  /// under way, which ends no list.
  private func attempt(_ request: ImageRequest) async -> (outcome: PrefetchOutcome, passes: Bool) {
    do throws(ImageError) {
      var status = try await provider.variant(for: request).cacheStatus
      if status.isBeingRenewed, request.options.cache == .normal {
        // Joins what is under way behind the stale answer, so that no more of that is begun than there are places.
        var renewal = request
        renewal.options.isRevalidation = true
        status = try await provider.variant(for: renewal).cacheStatus
      }
      switch status {
      case .hit(.memory), .hit(.disk), .staleHit(.memory, _, _), .staleHit(.disk, _, _),
        .staleIfError:
        return (.skipped, false)
      case .hit(.source), .hit(.variant), .staleHit(.source, _, _), .staleHit(.variant, _, _),
        .miss:
        return (.finished, false)
      }
    } catch {
      return (.failed(error), error.status == 503)
    }
  }
}

extension CacheStatus {
  /// Whether the answer was stale, and the origin is asked meanwhile.
  fileprivate var isBeingRenewed: Bool {
    if case .staleHit(_, .whileRevalidating, _) = self { true } else { false }
  }
}
