// OperatorTokens: who may use the operators' paths.

import CMicrohttpd
import Glibc

extension RequestContext {
  /// Whether the request carries one of the operators' tokens (RFC 6750, section 2.1). Takes as long for a token that
  /// is nearly right as for any other of its length.
  var isOperator: Bool {
    guard let field = RequestHandler.header("Authorization", of: connection) else { return false }
    let value = UnsafeRawBufferPointer(start: field, count: strlen(field))
    let scheme = Array("bearer ".utf8)
    // Letters in either case; the blank stays what it is.
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
