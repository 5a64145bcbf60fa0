// CodeCounts: counts errors by code.

import Platform

/// Counters by error code. The number of codes is small.
public final class CodeCounts: Sendable {
  private let counts = Lock<[String: Int]>([:])

  /// Creates an empty set of counters.
  public init() {}

  /// Counts one occurrence.
  public func add(_ code: String) {
    counts.withLock { $0[code, default: 0] += 1 }
  }

  /// The counts so far.
  public var values: [String: Int] { counts.withLock { $0 } }
}
