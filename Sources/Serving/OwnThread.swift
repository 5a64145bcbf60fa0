// OwnThread: a thread of the server's own, for calls that block.

import Glibc

/// A POSIX thread that runs one closure. Whoever makes it ends it by a signal of its own and then joins it.
struct OwnThread: Sendable {
  private final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  private let thread: pthread_t

  /// Starts a thread.
  init(_ run: @escaping @Sendable () -> Void) throws(ServerError) {
    // Released by the thread, or below when there is none.
    let body = Unmanaged.passRetained(Body(run))
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        if let context { Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run() }
        return nil
      }, body.toOpaque())
    guard status == 0 else {
      body.release()
      throw .cannotStart(reason: "no thread: \(status)")
    }
    self.thread = thread
  }

  /// Waits for its end.
  func join() { pthread_join(thread, nil) }
}
