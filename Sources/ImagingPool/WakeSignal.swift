// WakeSignal: how one thread wakes another that waits in poll(2).

import CLinux
import Glibc
import ImagingWire
import Platform

/// An eventfd(2): set by any thread, waited for and reset by one.
final class WakeSignal: Sendable {
  private let event: OwnedDescriptor

  /// Not set.
  init() throws(WireError) {
    let descriptor = pictor_linux_event()
    guard descriptor >= 0 else { throw .system(call: "eventfd", code: errno) }
    event = OwnedDescriptor(owning: descriptor)
  }

  /// To wait on: readable while set.
  var descriptor: CInt { event.value }

  /// Sets it.
  func set() {
    var one: UInt64 = 1
    // Fails only when it has been set 2^64 - 2 times, and then it is set.
    _ = write(event.value, &one, 8)
  }

  /// Resets it.
  func reset() {
    var count: UInt64 = 0
    _ = read(event.value, &count, 8)
  }
}

/// Waits until one of `descriptors` has something to say; negative ones are passed over. The result says which do.
/// Without a deadline it waits for as long as it takes.
func wait(
  for descriptors: [CInt], until deadline: ContinuousClock.Instant?
) -> [Bool] {
  var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  var milliseconds: CInt = -1
  if let deadline {
    let left = ContinuousClock.now.duration(to: deadline)
    // Rounded up, so that the deadline is over when poll(2) returns for it.
    milliseconds =
      left <= .zero ? 0 : CInt(min((left / .milliseconds(1)).rounded(.up), 3_600_000))
  }
  // An interruption (EINTR) looks like nothing happened, and callers look at the time and wait again.
  let ready = poll(&entries, nfds_t(entries.count), milliseconds)
  return entries.map { ready > 0 && $0.revents != 0 }
}
