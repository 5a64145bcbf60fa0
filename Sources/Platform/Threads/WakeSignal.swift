// WakeSignal: wakes a thread that waits in poll(2) or epoll_wait(2).

import CLinux
import Glibc
import Synchronization

/// An eventfd(2) that any thread sets, and that one thread waits for and resets.
///
/// The waiting thread looks for work after each reset. Setting a signal that is already set costs
/// no system call, so concurrent calls wake the thread once.
public final class WakeSignal: Sendable {
  private let event: OwnedDescriptor
  private let isSet = Atomic<Bool>(false)

  /// Creates a signal that is not set.
  public init() throws(SystemError) {
    let descriptor = pictor_linux_event()
    guard descriptor >= 0 else { throw SystemError() }
    event = OwnedDescriptor(owning: descriptor)
  }

  /// The descriptor to poll, readable while the signal is set.
  public var descriptor: CInt { event.value }

  /// Whether the signal is set, for threads that poll without waiting.
  public var isPending: Bool { isSet.load(ordering: .relaxed) }

  /// Sets the signal.
  public func set() {
    guard !isSet.exchange(true, ordering: .sequentiallyConsistent) else { return }
    var one: UInt64 = 1
    // Fails only if the counter is at its maximum, and then the signal is set.
    _ = write(event.value, &one, 8)
  }

  /// Resets the signal. A signal that is being set concurrently stays set until its event is
  /// written.
  public func reset() {
    var count: UInt64 = 0
    // The flag is set but the event is not written yet. Clearing the flag now would leave the event
    // readable for ever, and the waiting thread would spin.
    guard read(event.value, &count, 8) == 8 else { return }
    // Cleared before the caller looks for work, so a later `set` writes a new event.
    isSet.store(false, ordering: .sequentiallyConsistent)
  }
}
