// OperatorGate: recognizes operators by their tokens, and refuses clients that guess.

import CMicrohttpd
import Core
import Glibc

/// What a request's `Authorization` field proves.
enum OperatorVerdict {
  /// The token is this operator's.
  case known(Operator)
  case missing
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

  init(_ operators: [Operator]) { set(operators) }

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

/// Wrong tokens of the last minute by client network, in a bounded table. Pure.
///
/// After `limit` wrong tokens a network is refused until its minute, from the first, ends.
struct RefusedAttempts {
  /// Wrong tokens that a network may send in a minute.
  static let limit = 10
  /// Milliseconds in which they are counted.
  static let window = 60_000
  /// Networks that are remembered; a further one evicts the one whose minute began first.
  static let maximumNetworks = 4_096

  private struct Count {
    let since: Int
    var number: Int
  }

  private var counts = BoundedTable<IPAddress?, Count>(limit: maximumNetworks)

  var networkCount: Int { counts.count }

  /// Returns the seconds until a client may try again, at least 1; `nil` if it may try now.
  ///
  /// - Parameter now: monotonic milliseconds.
  func wait(of client: IPAddress?, at now: Int) -> Int? {
    guard let count = counts[client?.clientNetwork], count.number >= Self.limit else {
      return nil
    }
    let rest = count.since + Self.window - now
    return rest > 0 ? (rest + 999) / 1_000 : nil
  }

  mutating func add(from client: IPAddress?, at now: Int) {
    let network = client?.clientNetwork
    if let count = counts[network], now - count.since < Self.window {
      counts[network] = Count(since: count.since, number: count.number + 1)
    } else {
      counts.setNewest(Count(since: now, number: 1), for: network)
    }
  }
}

extension RequestContext {
  /// Returns the operator who sent the request; `nil` for an endpoint without operators.
  ///
  /// - Throws: `unauthorized` without a valid token, `tooManyAttempts` after too many wrong ones.
  func identify(for endpoint: any Endpoint) throws(ImageError) -> Operator? {
    guard endpoint.access == .operators else { return nil }
    switch verdict {
    case .known(let found): return found
    case .missing, .wrong: throw .unauthorized
    case .limited(let seconds): throw .tooManyAttempts(retryAfter: seconds)
    }
  }

  /// Checks that an operator's token has the scope that the method needs.
  ///
  /// - Throws: `insufficientScope`.
  func checkScope(of found: Operator?, for endpoint: any Endpoint) throws(ImageError) {
    let scope = endpoint.scope(for: client.method)
    guard found?.scopes.contains(scope) ?? true else {
      throw .insufficientScope(scope.rawValue)
    }
  }

  /// Whether the request has an operator's token of any scope. A wrong one is an attempt.
  var isOperator: Bool {
    if case .known = verdict { true } else { false }
  }

  /// Whether the client may use an endpoint with its method.
  func hasAccess(to endpoint: any Endpoint) -> Bool {
    (try? checkScope(of: try identify(for: endpoint), for: endpoint)) != nil
  }

  /// What the request's token proves. Determined once per request, so that a wrong one counts once.
  private var verdict: OperatorVerdict {
    if let known = client.verdict { return known }
    let field = RequestHandler.field("Authorization", on: connection).map {
      UnsafeRawBufferPointer(start: $0, count: strlen($0))
    }
    let address = handler.named(client, LoggedHeader(on: connection)).address
    let verdict = handler.gate.verdict(on: field, from: address, at: Clock.coarseMilliseconds())
    switch verdict {
    case .known, .missing: break
    case .wrong: handler.figures.tokensRefused.add("wrong")
    case .limited: handler.figures.tokensRefused.add("limited")
    }
    client.verdict = verdict
    return verdict
  }
}
