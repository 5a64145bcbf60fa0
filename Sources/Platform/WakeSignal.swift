// WakeSignal: how one thread wakes another that waits in poll(2) or epoll_wait(2).

import CLinux
import Glibc

/// An eventfd(2): set by any thread, waited for and reset by one.
public final class WakeSignal: Sendable {
  private let event: OwnedDescriptor

  /// Not set.
  public init() throws(SystemError) {
    let descriptor = pictor_linux_event()
    guard descriptor >= 0 else { throw SystemError() }
    event = OwnedDescriptor(owning: descriptor)
  }

  /// To wait on: readable while set.
  public var descriptor: CInt { event.value }

  /// Sets it.
  public func set() {
    var one: UInt64 = 1
    // Fails only when it has been set 2^64 - 2 times, and then it is set.
    _ = write(event.value, &one, 8)
  }

  /// Resets it.
  public func reset() {
    var count: UInt64 = 0
    _ = read(event.value, &count, 8)
  }
}
