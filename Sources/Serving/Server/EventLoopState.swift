// EventLoopState: the state of one event loop's thread; hits share nothing between cores.

import Core
import Glibc
import Synchronization

/// A counter that one thread writes and any thread reads. Uses a plain load and store instead of a
/// locked instruction.
final class SingleWriterCounter: Sendable {
  private let storage = Atomic<Int>(0)

  /// Adds to the counter. Only the owning thread may call it.
  func add(_ amount: Int) {
    storage.store(storage.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
  }

  var value: Int { storage.load(ordering: .relaxed) }
}

/// The state of one event loop's thread.
final class EventLoopState: @unchecked Sendable {
  // Sound as Sendable: `policy`, `clients`, `sampler` and the clock's state are used on this loop's
  // thread only, because libmicrohttpd calls back on the thread a connection belongs to. Everything
  // else is immutable and Sendable.

  let index: Int
  /// What the configuration decides about requests that begin now: a copy of the loop's own.
  var policy: RequestPolicy

  /// The loop's connections, by descriptor.
  let clients = ClientTable()
  /// Picks the requests that are recorded.
  var sampler = TraceSampler()
  /// Wakes the loop's thread.
  let wake: WakeSignal

  /// Rounds of the loop that have begun.
  let rounds = SingleWriterCounter()
  let received = SingleWriterCounter()
  /// Complete requests without a response. A request whose body never ends is not counted, so it
  /// does not delay a stop.
  let active = SingleWriterCounter()
  /// Responses with status 200.
  let succeeded = SingleWriterCounter()
  /// Responses with status 304.
  let notModified = SingleWriterCounter()
  /// Body bytes of responses that were sent completely, and the bytes sent of streamed responses.
  let bytesSent = SingleWriterCounter()
  /// Latency of memory hits, from the complete header to the response.
  let hitLatency = LatencyHistogram()

  private var dateSecond = Int.min
  private let dateText = UnsafeMutablePointer<UInt8>.allocate(capacity: HTTPDate.length)

  init(index: Int, policy: RequestPolicy, wake: WakeSignal) {
    self.policy = policy
    self.index = index
    self.wake = wake
  }

  deinit { dateText.deallocate() }

  /// Returns `now` as an HTTP date, formatted once per second.
  func date(_ now: UnixTime) -> UnsafePointer<UInt8> {
    if now.seconds != dateSecond {
      HTTPDate.write(now, into: dateText)
      dateSecond = now.seconds
    }
    return UnsafePointer(dateText)
  }
}

/// Clocks, each with the precision its use needs.
enum Clock {
  /// Monotonic nanoseconds, for durations.
  static func nanoseconds() -> Int { read(CLOCK_MONOTONIC) }

  /// Monotonic milliseconds, for deadlines. Up to a few milliseconds late, and cheaper than
  /// `nanoseconds`.
  static func coarseMilliseconds() -> Int { read(CLOCK_MONOTONIC_COARSE) / 1_000_000 }

  /// Wall-clock time, in whole seconds.
  static func now() -> UnixTime { UnixTime(seconds: read(CLOCK_REALTIME_COARSE) / 1_000_000_000) }

  private static func read(_ clock: clockid_t) -> Int {
    var time = timespec()
    // Fails only for clocks that do not exist.
    clock_gettime(clock, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }
}

extension Duration {
  /// Whole milliseconds, at least 0.
  var wholeMilliseconds: Int {
    max(Int(components.seconds) * 1_000 + Int(components.attoseconds / 1_000_000_000_000_000), 0)
  }
}
