// Eventually: waits until a condition holds.

import Glibc
import Testing

/// Polls until a condition holds. Fails the test at the call's line if it never does.
///
/// - Parameters:
///   - what: What is expected, for the failure message.
///   - limit: the longest wait; generous, because a sanitized build is slow.
///   - condition: What must hold. An error that it throws ends the wait.
public func eventually(
  _ what: @autoclosure () -> String = "the condition holds", within limit: Duration = .seconds(30),
  sourceLocation: SourceLocation = #_sourceLocation, condition: () async throws -> Bool
) async throws {
  let holds = try await becomesTrue(within: limit, condition)
  try #require(holds, "never: \(what())", sourceLocation: sourceLocation)
}

/// Polls until a condition holds, and blocks the thread meanwhile. Otherwise like `eventually`.
public func blockUntil(
  _ what: @autoclosure () -> String = "the condition holds", within limit: Duration = .seconds(30),
  sourceLocation: SourceLocation = #_sourceLocation, condition: () throws -> Bool
) throws {
  let deadline = ContinuousClock.now + limit
  var holds = try condition()
  while !holds, .now < deadline {
    usleep(5_000)
    holds = try condition()
  }
  try #require(holds, "never: \(what())", sourceLocation: sourceLocation)
}

/// Polls until a condition holds, for at most `limit`. Returns whether it does.
public func becomesTrue(
  within limit: Duration = .seconds(30), _ condition: () async throws -> Bool
) async rethrows -> Bool {
  let deadline = ContinuousClock.now + limit
  while ContinuousClock.now < deadline {
    if try await condition() { return true }
    // A cancelled test does not spin.
    guard (try? await Task.sleep(for: .milliseconds(2))) != nil else { break }
  }
  return try await condition()
}
