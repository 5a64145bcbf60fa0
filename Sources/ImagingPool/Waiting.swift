// Waiting for several descriptors at once, with a deadline.

import Glibc

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
