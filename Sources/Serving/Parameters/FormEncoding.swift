// FormEncoding: the hint for clients that write a space as `+`.

import Model

extension RequestTarget {
  /// What may be wrong with the request where its source was not found: a `+` in the path of its URL, sent as such.
  ///
  /// HTML forms write a space as `+`; in a URL it stands for itself (RFC 3986), so the origin is asked for a name with a
  /// plus. A client that sends `%2B` means the plus.
  func hint(for error: ImageError) -> String? {
    guard case .sourceNotFound = error.cause, case .success(let request)? = request,
      request.source.path.contains("+"), hasPlusInURL
    else { return nil }
    return "its path has a '+', which stands for itself: write %20 for a space"
  }

  private var hasPlusInURL: Bool {
    query.split(separator: UInt8(ascii: "&")).contains { piece in
      let name = piece.prefix { $0 != UInt8(ascii: "=") }
      return PercentEncoding.decode(name) == "url" && piece.contains(UInt8(ascii: "+"))
    }
  }
}
