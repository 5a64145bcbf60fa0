// OwnThread: a thread for blocking C, joined by its owner.

import Glibc
import Model

/// A POSIX thread that runs one closure, with all signals blocked: they are the main thread's, and a `SIGPIPE` of a
/// library's write has no effect here.
final class OwnThread: Sendable {
  private final class Start: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  /// `nil` once it was joined.
  private let thread: Lock<pthread_t?>

  /// - Throws: `ImageError.internal` when no thread can be had.
  init(_ body: @escaping @Sendable () -> Void) throws(ImageError) {
    var thread = pthread_t()
    // Released by the thread as its first act, or below when there is no thread.
    let start = Unmanaged.passRetained(Start(body))
    let status = pthread_create(
      &thread, nil,
      { pointer in
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        if let pointer { Unmanaged<Start>.fromOpaque(pointer).takeRetainedValue().body() }
        return nil
      }, start.toOpaque())
    guard status == 0 else {
      start.release()
      throw .internal(detail: "pthread_create: \(errnoText(status))")
    }
    self.thread = Lock(thread)
  }

  /// Waits for the closure to return; once, later calls return at once.
  func join() {
    let joined = thread.withLock { $0.take() }
    if let joined { pthread_join(joined, nil) }
  }
}
