// OwnThread: a thread of ours for C calls that wait, which must not hold up Swift's few.

import CLinux
import Glibc

/// Starts threads.
enum OwnThread {
  /// What a new thread runs.
  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  /// Runs `body` on a thread of its own, detached. The kernel keeps 15 bytes of `name`, for `ps` and `perf`.
  static func start(
    name: String, _ body: @escaping @Sendable () -> Void
  ) throws(ImagerThreadError) {
    // Released by the new thread, or below when there is none.
    let retained = Unmanaged.passRetained(
      Body {
        _ = pictor_linux_set_thread_name(name)
        body()
      })
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
