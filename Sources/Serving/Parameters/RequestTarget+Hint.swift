// RequestTarget+Hint: the hint for clients that write a space as `+`.

import Model

extension RequestTarget {
  /// Returns a hint for a source that was not found and whose URL has a literal `+` in its path; `nil` for other errors.
  ///
  /// HTML forms write a space as `+`; in a URL it stands for itself (RFC 3986), so the origin is asked for a name with a
  /// plus. A client that sends `%2B` wants the plus, and gets no hint.
  func hint(for error: ImageError) -> String? {
    guard case .sourceNotFound = error.cause, case .success(let request)? = request,
      request.source.path.contains("+"), hasPlusInURL
    else { return nil }
    return "its path has a '+', which is not decoded as a space: write %20 for a space"
  }

  private var hasPlusInURL: Bool {
    query.split(separator: UInt8(ascii: "&")).contains { piece in
      let name = piece.prefix { $0 != UInt8(ascii: "=") }
      return PercentEncoding.decode(name) == "url" && piece.contains(UInt8(ascii: "+"))
    }
  }
}
