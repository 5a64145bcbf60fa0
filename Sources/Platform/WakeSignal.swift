// WakeSignal: how one thread wakes another that waits in poll(2) or epoll_wait(2).

import CLinux
import Glibc
import Synchronization

/// An eventfd(2): set by any thread, waited for and reset by one, which looks after each reset at what the others left
/// for it. Setting what is set costs no system call, so that many who come at once wake it once.
public final class WakeSignal: Sendable {
  private let event: OwnedDescriptor
  private let isSet = Atomic<Bool>(false)

  /// Not set.
  public init() throws(SystemError) {
    let descriptor = pictor_linux_event()
    guard descriptor >= 0 else { throw SystemError() }
    event = OwnedDescriptor(owning: descriptor)
  }

  /// To wait on: readable while set.
  public var descriptor: CInt { event.value }

  /// Whether it is set, for those who would not wait anyway.
  public var isPending: Bool { isSet.load(ordering: .relaxed) }

  /// Sets it.
  public func set() {
    guard !isSet.exchange(true, ordering: .sequentiallyConsistent) else { return }
    var one: UInt64 = 1
    // Fails only when it has been set 2^64 - 2 times, and then it is set.
    _ = write(event.value, &one, 8)
  }

  /// Resets it. One that is being set at this moment stays set, and is reset after its event was written.
  public func reset() {
    var count: UInt64 = 0
    // Set and without an event: the setter is about to write it. Without the flag that event would stay readable, and
    // whoever waits for it would be woken again and again.
    guard read(event.value, &count, 8) == 8 else { return }
    // In this order: whoever sets it in between is one whose work the caller is about to find.
    isSet.store(false, ordering: .sequentiallyConsistent)
  }
}
