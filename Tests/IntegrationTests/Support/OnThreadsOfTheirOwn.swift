// The trait of tests that block all the time, waiting for processes and sockets.

import TestSupport
import Testing

/// Runs a suite's tests on threads of their own; see `BlockingExecutor`.
struct OnThreadsOfTheirOwn: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
  }
}

extension Trait where Self == OnThreadsOfTheirOwn {
  /// See `OnThreadsOfTheirOwn`.
  static var onThreadsOfTheirOwn: Self { Self() }
}
