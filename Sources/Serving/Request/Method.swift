// Method: the request methods that the server distinguishes.

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
  /// A text this short does not allocate.
  init(_ name: UnsafePointer<CChar>) { self = Method(rawValue: String(cString: name)) ?? .other }

  /// Whether the method is GET or HEAD.
  var isSafe: Bool { self == .get || self == .head }

  /// Whether requests with the method usually have a body.
  var hasBody: Bool { self == .post || self == .put }

  /// Returns the value of `Allow` (RFC 9110, section 10.2.1): the methods and `OPTIONS`.
  static func allow(_ methods: [Method]) -> String {
    (methods + [.options]).map(\.name).joined(separator: ", ")
  }
}
