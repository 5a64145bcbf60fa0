// Worker: what the thread of one event loop keeps for itself, so that hits share nothing between cores.

import Glibc
import Model
import Platform
import Synchronization
import Telemetry

/// A number only one thread changes and any other may read: a plain load and store, no locked instruction.
final class SingleWriterCounter: Sendable {
  private let storage = Atomic<Int>(0)

  /// Adds; only ever called by the owning thread.
  func add(_ amount: Int) {
    storage.store(storage.load(ordering: .relaxed) &+ amount, ordering: .relaxed)
  }

  /// The number now.
  var value: Int { storage.load(ordering: .relaxed) }
}

/// The state of one event loop's thread.
final class EventLoopState: @unchecked Sendable {
  // Sound as Sendable: `memo`, `accept` and the clock's state are touched on this worker's own thread alone, since
  // libmicrohttpd calls back on the thread a connection belongs to; everything else is immutable and Sendable.

  /// From 0 to one less than the number of workers.
  let index: Int
  /// Targets parsed earlier.
  let memo: RequestMemo
  /// `Accept` lines read earlier.
  let accept = AcceptMemo()

  /// Its connections, by descriptor.
  let clients = ClientTable()
  /// Wakes its thread.
  let wake: WakeSignal

  /// Request lines.
  let received = SingleWriterCounter()
  /// Requests that are whole and whose answer is not. One whose body never ends is no reason for a stop to wait.
  let active = SingleWriterCounter()
  /// Answers with status 200.
  let succeeded = SingleWriterCounter()
  /// Answers with status 304.
  let notModified = SingleWriterCounter()
  /// Body bytes of answers that were sent whole, and what was sent of those that come while they are sent.
  let bytesSent = SingleWriterCounter()
  /// Memory hits: from the header to the answer.
  let hitLatency = LatencyHistogram()

  private var dateSecond = Int.min
  private let dateText = UnsafeMutablePointer<UInt8>.allocate(capacity: HTTPDate.length)

  /// A worker that has seen nothing yet.
  init(index: Int, memoBytes: Int, wake: WakeSignal) {
    (self.index, self.wake) = (index, wake)
    memo = RequestMemo(limit: memoBytes)
  }

  deinit { dateText.deallocate() }

  /// The date of `now` as HTTP writes it, made once a second.
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
  /// Monotonic, for durations.
  static func nanoseconds() -> Int { read(CLOCK_MONOTONIC) }

  /// Monotonic in milliseconds and a few of them late, for deadlines; a quarter of the other's price.
  static func coarseMilliseconds() -> Int { read(CLOCK_MONOTONIC_COARSE) / 1_000_000 }

  /// The wall clock's second.
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
