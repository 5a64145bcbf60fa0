// OperatorGate: recognizes operators by their tokens, and refuses clients that guess.

import Model
import Platform

/// What a request's `Authorization` field proves.
enum OperatorVerdict {
  /// The token is this operator's.
  case known(Operator)
  /// There is no token.
  case missing
  /// The token is wrong.
  case wrong
  /// The token is wrong, as too many before it from the client's network.
  case limited(retryAfter: Int)
}

/// The operators of a server, shared by its listeners.
final class OperatorGate: Sendable {
  private struct State {
    var operators: [(holder: Operator, token: [UInt8])] = []
    var attempts = RefusedAttempts()
  }

  private let state = Lock(State())

  /// Creates a gate for these operators.
  init(_ operators: [Operator]) { set(operators) }

  /// Replaces the operators.
  func set(_ operators: [Operator]) {
    let entries = operators.map { (holder: $0, token: Array($0.token.utf8)) }
    state.withLock { $0.operators = entries }
  }

  /// Whether there are operators. Without any there are no admin endpoints.
  var hasOperators: Bool { state.withLock { !$0.operators.isEmpty } }

  /// Compares the token of a request with all tokens.
  ///
  /// A request without a bearer token is not counted: it guesses nothing, and may have a name and a
  /// password for the origin. A valid token is always accepted: others at its address must not shut
  /// its operator out. The limit protects the log; guesses find no such secret (`OperatorToken`).
  ///
  /// - Parameters:
  ///   - field: the value of `Authorization` (RFC 6750, section 2.1).
  ///   - client: the client's address.
  ///   - now: monotonic milliseconds.
  func verdict(
    on field: UnsafeRawBufferPointer?, from client: IPAddress?, at now: Int
  ) -> OperatorVerdict {
    guard let field, let given = Self.token(in: field) else { return .missing }
    return state.withLock { state in
      var found: Operator?
      for entry in state.operators where Self.isEqual(entry.token, given) {
        found = entry.holder
      }
      if let found { return .known(found) }
      if let seconds = state.attempts.wait(of: client, at: now) {
        return .limited(retryAfter: seconds)
      }
      state.attempts.add(from: client, at: now)
      return .wrong
    }
  }

  /// Returns the token of a field with the scheme `Bearer`, in any case.
  private static func token(in field: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer>? {
    let scheme = Array("bearer ".utf8)
    // `| 0x20` ignores the case of letters and keeps the space.
    guard field.count > scheme.count, zip(field, scheme).allSatisfy({ $0 | 0x20 == $1 }) else {
      return nil
    }
    return field[scheme.count...]
  }

  /// Compares in a time that depends on the length of the given token alone.
  private static func isEqual(_ token: [UInt8], _ given: Slice<UnsafeRawBufferPointer>) -> Bool {
    guard !token.isEmpty else { return false }
    var difference = token.count ^ given.count
    for (place, byte) in given.enumerated() {
      difference |= Int(byte ^ token[place % token.count])
    }
    return difference == 0
  }
}
