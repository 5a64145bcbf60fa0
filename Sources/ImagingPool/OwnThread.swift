// OwnThread: a thread of ours for C calls that wait, which must not hold up Swift's few.

import Glibc
import Model

/// Starts threads.
enum OwnThread {
  /// What a new thread runs.
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Runs `body` on a thread of its own, detached.
  static func start(
    name: String, _ body: @escaping @Sendable () -> Void
  ) throws(ImagerThreadError) {
    // Released by the new thread, or below when there is none.
    let retained = Unmanaged.passRetained(Body(body))
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { pointer in
        if let pointer { Unmanaged<Body>.fromOpaque(pointer).takeRetainedValue().run() }
        return nil
      }, retained.toOpaque())
    guard status == 0 else {
      retained.release()
      throw ImagerThreadError(code: status)
    }
    pthread_detach(thread)
  }
}

/// `pthread_create` failed.
struct ImagerThreadError: Error {
  let code: CInt
}
