// OnOwnThreads: the trait of suites whose tests block or compute for long.

import Testing

/// Runs a suite's tests on threads of their own; see `BlockingExecutor`.
///
/// Suites need it whose tests block, or compute for seconds under the thread sanitizer. On the
/// cooperative pool, with one thread per core, two of them keep the servers of other tests waiting.
public struct OnOwnThreads: SuiteTrait, TestTrait, TestScoping {
  /// `true`: the trait of a suite applies to all of its tests.
  public var isRecursive: Bool { true }

  /// Runs a test with its tasks on `BlockingExecutor`.
  public func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
  }
}

extension Trait where Self == OnOwnThreads {
  /// See `OnOwnThreads`.
  public static var onOwnThreads: Self { Self() }
}
