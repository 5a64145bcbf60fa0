// Method: the request methods that the server distinguishes.

import Glibc

/// A request method (RFC 9110, section 9).
enum Method: String {
  case get = "GET"
  case head = "HEAD"
  case post = "POST"
  case put = "PUT"
  case delete = "DELETE"
  case options = "OPTIONS"
  case other = ""

  /// The method's name, as in `Allow`.
  var name: String { rawValue }

  /// Parses the method that libmicrohttpd passes. Methods are case-sensitive.
  init(_ name: UnsafePointer<CChar>) {
    self =
      Self.isEqual(name, "GET")
      ? .get
      : Self.isEqual(name, "HEAD")
        ? .head
        : Self.isEqual(name, "POST")
          ? .post
          : Self.isEqual(name, "PUT")
            ? .put
            : Self.isEqual(name, "DELETE")
              ? .delete : Self.isEqual(name, "OPTIONS") ? .options : .other
  }

  /// Whether the method is GET or HEAD.
  var isSafe: Bool { self == .get || self == .head }

  /// Whether requests with the method usually have a body.
  var hasBody: Bool { self == .post || self == .put }

  /// Returns the value of `Allow` (RFC 9110, section 10.2.1): the methods and `OPTIONS`.
  static func allow(_ methods: [Method]) -> String {
    (methods + [.options]).map(\.name).joined(separator: ", ")
  }

  /// Compares without allocating a `String` per request.
  static func isEqual(_ name: UnsafePointer<CChar>, _ other: StaticString) -> Bool {
    // The literal ends with a NUL and has static lifetime.
    strcmp(name, UnsafeRawPointer(other.utf8Start).assumingMemoryBound(to: CChar.self)) == 0
  }
}
