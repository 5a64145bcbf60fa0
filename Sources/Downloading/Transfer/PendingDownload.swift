// PendingDownload: a call of Downloader.load that waits for its result.

import Model
import Platform

/// A load that waits for its result.
struct PendingDownload: Sendable {
  let id: DownloadQueue.ID
  let target: DownloadTarget
  let validators: Validators?
  let onHead: (@Sendable (OriginResponse) -> Void)?
  let onBody: (@Sendable (any StreamingBody) -> Void)?
  let forwarded: [HeaderField]
  let trail: ServerTrail
  let trace: TraceContext?
  let arrived: ContinuousClock.Instant
  let priority: SharedPriority
  private let work: (any WorkPriority)?
  private let reply: Reply<Result<LoadResult, ImageError>>

  init(
    id: DownloadQueue.ID, target: DownloadTarget, request: LoadRequest,
    arrived: ContinuousClock.Instant,
    priority: SharedPriority, reply: Reply<Result<LoadResult, ImageError>>
  ) {
    self.id = id
    self.target = target
    self.validators = request.validators
    forwarded = request.forwarded
    trail = request.trail
    trace = request.trace
    onHead = request.onHead
    onBody = request.onBody
    work = request.priority
    self.arrived = arrived
    self.priority = priority
    self.reply = reply
  }

  /// The number of requests that wait for the load.
  var waiters: Int { work?.waiters ?? 1 }

  /// Delivers the result. Called exactly once, by the code that removes the load from the loop's
  /// table.
  func answer(_ result: Result<LoadResult, ImageError>) { reply.give(result) }
}

/// A load's priority and clients: they grow on any thread, and are read on the transfer thread. Being
/// shared, a change that arrives before its load is not lost.
final class SharedPriority: Sendable {
  private struct State {
    var value = LoadPriority.low
    var clients: Set<LoadClient> = []
  }

  private let state = Lock(State())

  var value: LoadPriority { state.withLock { $0.value } }
  var clients: Set<LoadClient> { state.withLock { $0.clients } }

  /// Raises the priority; never lowers it.
  func raise(to value: LoadPriority) { state.withLock { $0.value = max($0.value, value) } }

  /// Adds clients that the load is for.
  func add(_ clients: Set<LoadClient>) { state.withLock { $0.clients.formUnion(clients) } }
}

/// A reply from the transfer thread to an awaiting task.
struct Reply<Value: Sendable>: Sendable {
  private let value: Lock<Value?>
  private let continuation: CheckedContinuation<Void, Never>

  /// Delivers the value. Call exactly once.
  func give(_ value: Value) {
    self.value.withLock { $0 = value }
    continuation.resume()
  }

  /// Passes a reply to `ask` and waits for its value. The value goes through a lock, because the
  /// thread sanitizer does not track continuations.
  static func of(_ ask: (Reply<Value>) -> Void) async -> Value? {
    let value = Lock<Value?>(nil)
    await withCheckedContinuation { ask(Reply(value: value, continuation: $0)) }
    return value.withLock { $0.take() }
  }
}
