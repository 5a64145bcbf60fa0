// Load: one call of Downloader.load on its way to the transfer thread and back.

import Model
import Platform

/// A load that waits for its answer.
struct PendingDownload: Sendable {
  let id: DownloadQueue.ID
  let target: DownloadTarget
  let validators: Validators?
  let onHead: (@Sendable (OriginResponse) -> Void)?
  let onBody: (@Sendable (any StreamingBody) -> Void)?
  let forwarded: [HeaderField]
  let trail: ServerTrail
  let arrived: ContinuousClock.Instant
  let priority: SharedPriority
  private let work: (any WorkPriority)?
  private let reply: Reply<Result<LoadResult, ImageError>>

  init(
    id: DownloadQueue.ID, target: DownloadTarget, request: LoadRequest,
    arrived: ContinuousClock.Instant,
    priority: SharedPriority, reply: Reply<Result<LoadResult, ImageError>>
  ) {
    (self.id, self.target, self.validators) = (id, target, request.validators)
    (forwarded, trail) = (request.forwarded, request.trail)
    onHead = request.onHead
    onBody = request.onBody
    work = request.priority
    (self.arrived, self.priority, self.reply) = (arrived, priority, reply)
  }

  /// Requests that wait for it.
  var waiters: Int { work?.waiters ?? 1 }

  /// Exactly once, by whoever takes the load out of the loop's table.
  func answer(_ result: Result<LoadResult, ImageError>) { reply.give(result) }
}

/// A load's priority: raised on any thread, read on the transfer thread. So a raise that overtakes its load on the way
/// there is not lost.
final class SharedPriority: Sendable {
  private let state = Lock(LoadPriority.low)

  var value: LoadPriority { state.withLock { $0 } }

  /// Never lowers it.
  func raise(to value: LoadPriority) { state.withLock { $0 = max($0, value) } }
}

/// The transfer thread's answer to somebody who awaits it.
struct Reply<Value: Sendable>: Sendable {
  private let value: Lock<Value?>
  private let continuation: CheckedContinuation<Void, Never>

  /// Exactly once.
  func give(_ value: Value) {
    self.value.withLock { $0 = value }
    continuation.resume()
  }

  /// Awaits what `ask` has somebody give. It goes by way of a lock, since the thread sanitizer does not see into
  /// continuations.
  static func of(_ ask: (Reply<Value>) -> Void) async -> Value? {
    let value = Lock<Value?>(nil)
    await withCheckedContinuation { ask(Reply(value: value, continuation: $0)) }
    return value.withLock { $0.take() }
  }
}
