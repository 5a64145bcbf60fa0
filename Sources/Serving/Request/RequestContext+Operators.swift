// RequestContext+Operators: authenticates requests to the admin endpoints.

import CMicrohttpd
import Glibc

extension RequestContext {
  /// Whether the request carries an operator's token (RFC 6750, section 2.1). Compares tokens of
  /// equal length in constant time.
  var isOperator: Bool {
    guard let field = RequestHandler.field("Authorization", on: connection) else { return false }
    let value = UnsafeRawBufferPointer(start: field, count: strlen(field))
    let scheme = Array("bearer ".utf8)
    // `| 0x20` ignores the case of letters and keeps the space.
    guard value.count > scheme.count, zip(value, scheme).allSatisfy({ $0 | 0x20 == $1 }) else {
      return false
    }
    let given = value[scheme.count...]
    var isFound = false
    for token in handler.operatorTokens.withLock({ $0 }) where Self.isEqual(token, given) {
      isFound = true
    }
    return isFound
  }

  private static func isEqual(_ token: String, _ given: Slice<UnsafeRawBufferPointer>) -> Bool {
    guard token.utf8.count == given.count else { return false }
    var difference: UInt8 = 0
    for (left, right) in zip(token.utf8, given) { difference |= left ^ right }
    return difference == 0
  }
}
