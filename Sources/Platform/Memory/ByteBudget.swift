// ByteBudget: a limit for the bytes that are held in memory, or in a folder, for one purpose.

import Synchronization

/// Limits the bytes that are held at one time. Each holder of bytes has a lease for them, and the
/// last reference to the lease returns them.
public final class ByteBudget: Sendable {
  /// The maximum of all leases, in bytes.
  public let limit: Int
  private let usedBytes = Atomic<Int>(0)
  private let peakBytes = Atomic<Int>(0)
  private let refusals = Atomic<Int>(0)
  private let isAwaited = Atomic<Bool>(false)
  private let observer = Lock<(@Sendable () -> Void)?>(nil)

  /// Creates a budget of at most `limit` bytes.
  public init(limit: Int) { self.limit = max(limit, 0) }

  /// A budget without a limit, which counts all the same.
  public static var unlimited: ByteBudget { ByteBudget(limit: .max) }

  /// Bytes that are held now.
  public var used: Int { usedBytes.load(ordering: .relaxed) }
  /// The most bytes that were ever held at one time.
  public var peak: Int { peakBytes.load(ordering: .relaxed) }
  /// How often bytes did not fit.
  public var refused: Int { refusals.load(ordering: .relaxed) }

  /// Returns a lease of `count` bytes, or `nil` if they do not fit now.
  public func lease(_ count: Int) -> ByteLease? {
    take(count) ? ByteLease(self, count: count) : nil
  }

  /// As `lease`. If the bytes do not fit, tells the observer once when others are returned.
  public func leaseOrNotice(_ count: Int) -> ByteLease? {
    if let lease = lease(count) { return lease }
    isAwaited.store(true, ordering: .sequentiallyConsistent)
    // Bytes that were returned in between notified no observer.
    return take(count, isCounted: false) ? ByteLease(self, count: count) : nil
  }

  /// Sets what `leaseOrNotice` tells. It is called on the thread that returns bytes, in a `deinit`,
  /// maybe under locks of the caller: it must neither block nor take such a lock.
  public func observeReturns(_ observer: (@Sendable () -> Void)?) {
    self.observer.withLock { $0 = observer }
  }

  fileprivate func take(_ count: Int, isCounted: Bool = true) -> Bool {
    // In order with `isAwaited`: this sees the returned bytes, or that thread sees the wish.
    var used = usedBytes.load(ordering: .sequentiallyConsistent)
    while true {
      guard count <= limit - used else {
        if isCounted { refusals.wrappingAdd(1, ordering: .relaxed) }
        return false
      }
      let (isTaken, now) = usedBytes.weakCompareExchange(
        expected: used, desired: used + count, ordering: .sequentiallyConsistent)
      if isTaken { break }
      used = now
    }
    peakBytes.max(used + count, ordering: .relaxed)
    return true
  }

  fileprivate func giveBack(_ count: Int) {
    usedBytes.wrappingSubtract(count, ordering: .sequentiallyConsistent)
    guard isAwaited.load(ordering: .sequentiallyConsistent),
      isAwaited.exchange(false, ordering: .sequentiallyConsistent)
    else { return }
    let observer = observer.withLock { $0 }
    observer?()
  }
}

/// The right to hold bytes of a budget, which ends with the last reference.
public final class ByteLease: Sendable {
  private let budget: ByteBudget
  private let bytes: Atomic<Int>

  fileprivate init(_ budget: ByteBudget, count: Int) {
    self.budget = budget
    bytes = Atomic(count)
  }

  deinit { budget.giveBack(bytes.load(ordering: .relaxed)) }

  /// The number of bytes.
  public var count: Int { bytes.load(ordering: .relaxed) }

  /// Adds `count` bytes. Returns `false` without a change if they do not fit.
  public func grow(by count: Int) -> Bool {
    guard budget.take(count) else { return false }
    bytes.wrappingAdd(count, ordering: .relaxed)
    return true
  }
}
