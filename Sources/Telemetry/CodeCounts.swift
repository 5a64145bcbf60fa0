// CodeCounts: how often each error code happened.

import Platform

/// Counts by name. The names are the contract's error codes, so there are few.
public final class CodeCounts: Sendable {
  private let counts = Lock<[String: Int]>([:])

  /// Nothing counted yet.
  public init() {}

  /// Counts one.
  public func add(_ code: String) {
    counts.withLock { $0[code, default: 0] += 1 }
  }

  /// What was counted so far.
  public var values: [String: Int] { counts.withLock { $0 } }
}
