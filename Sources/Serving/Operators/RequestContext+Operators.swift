// RequestContext+Operators: decides whether a request may use an endpoint for operators.

import CMicrohttpd
import Glibc
import Model
import Platform

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
    do throws(ImageError) {
      try checkScope(of: try identify(for: endpoint), for: endpoint)
      return true
    } catch {
      return false
    }
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
