// Waiting: waits for several descriptors at once, with a deadline.

import Glibc

/// Waits until one of `descriptors` is readable or closed, or until the deadline. Negative
/// descriptors are ignored.
///
/// - Returns: for each descriptor, whether it is ready.
func wait(
  for descriptors: [CInt], until deadline: ContinuousClock.Instant?
) -> [Bool] {
  var entries = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
  var milliseconds: CInt = -1
  if let deadline {
    let left = ContinuousClock.now.duration(to: deadline)
    // Rounded up, so that the deadline has passed when poll(2) times out.
    milliseconds =
      left <= .zero ? 0 : CInt(min((left / .milliseconds(1)).rounded(.up), 3_600_000))
  }
  // After EINTR nothing is ready. Callers check the time and wait again.
  let ready = poll(&entries, nfds_t(entries.count), milliseconds)
  return entries.map { ready > 0 && $0.revents != 0 }
}
