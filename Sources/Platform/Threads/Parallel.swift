// Parallel: runs the parts of a computation on several threads, and waits for all of them.

import Synchronization

/// Parts of one computation at the same time.
public enum Parallel {
  /// Runs `body` for each of `0..<count` on `count` threads, the calling one included, to its end.
  ///
  /// A thread, also the calling one, takes the next free part. So a thread that starts late or not
  /// at all (pthread_create(3)) delays nothing. New threads inherit niceness and cores.
  ///
  /// - Parameters:
  ///   - count: the number of parts; 1 needs no thread.
  ///   - body: one part. No part may change what another uses; the compiler does not check.
  /// - Throws: what the first part throws that fails, by number.
  public static func run<Failure: Error>(
    _ count: Int, _ body: (Int) throws(Failure) -> Void
  ) throws(Failure) {
    guard count > 1 else { return count == 1 ? try body(0) : () }
    let failures = Lock([Failure?](repeating: nil, count: count))
    withoutActuallyEscaping(body) { body in
      let run = { (part: Int) in
        do throws(Failure) { try body(part) } catch { failures.withLock { $0[part] = error } }
      }
      withUnsafePointer(to: run) { run in
        let parts = Parts(count, run)
        for _ in 1..<count {
          try? OwnThread.start(name: "pictor-part", rank: nil, stackBytes: stackBytes) {
            parts.take()
          }
        }
        parts.take()
        parts.wait()
      }
    }
    if let failure = failures.withLock({ $0.lazy.compactMap(\.self).first }) { throw failure }
  }

  /// Parts that threads take one after the other.
  private final class Parts: @unchecked Sendable {
    // Sound as Sendable: `run` is used for a part that was taken, and the caller of `wait` keeps it
    // until all parts have ended. The parts are independent.
    private let run: UnsafePointer<(Int) -> Void>
    private let count: Int
    private let taken = Atomic<Int>(0)
    private let ended = Atomic<Int>(0)
    private let end = Semaphore()

    init(_ count: Int, _ run: UnsafePointer<(Int) -> Void>) {
      self.count = count
      self.run = run
    }

    /// Runs parts until all are taken.
    func take() {
      while true {
        let part = taken.wrappingAdd(1, ordering: .relaxed).oldValue
        guard part < count else { return }
        run.pointee(part)
        if ended.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue == count { end.post() }
      }
    }

    /// Waits until all parts have ended.
    func wait() { end.wait() }
  }

  /// The stack of a new thread. A worker's limit on memory counts the whole of it.
  private static let stackBytes = 512 << 10

  /// Returns how many parts to make of `total` items.
  ///
  /// - Parameters:
  ///   - least: the items of a part that are worth a thread.
  ///   - most: the most parts.
  public static func count(_ total: Int, atLeast least: Int, _ most: Int) -> Int {
    max(min(most, total / least), 1)
  }

  /// Returns part `index` of `count` nearly equal parts of a range.
  public static func part(_ index: Int, of count: Int, in range: Range<Int>) -> Range<Int> {
    let start = range.lowerBound + range.count * index / count
    return start..<range.lowerBound + range.count * (index + 1) / count
  }
}
