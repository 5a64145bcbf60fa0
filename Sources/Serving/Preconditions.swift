// Preconditions: whether a client already has what it asks for (RFC 9110, section 13).

import Model

/// Evaluating `If-None-Match` and `If-Modified-Since` of a GET or HEAD.
enum Preconditions {
  /// Whether the answer is 304.
  ///
  /// - Parameters:
  ///   - ifNoneMatch: `*` or a list of entity tags, compared weakly; where it is present, the date is not looked at.
  ///   - ifModifiedSince: a date; one that cannot be read is ignored.
  static func isNotModified(
    _ info: VariantInfo, ifNoneMatch: String?, ifModifiedSince: String?
  ) -> Bool {
    if let ifNoneMatch { return matches(ifNoneMatch, etag: info.etag) }
    guard let ifModifiedSince, let since = HTTPDate.parse(ifModifiedSince),
      let lastModified = info.lastModified.flatMap({ HTTPDate.parse($0) })
    else { return false }
    return lastModified <= since
  }

  /// Walks the list tag by tag: a comma or a blank may stand inside the quotes.
  private static func matches(_ list: String, etag: String) -> Bool {
    let wanted = opaque(Substring(etag).utf8)
    var rest = Substring(list).utf8
    let isSeparator = { (byte: UInt8) in
      byte == UInt8(ascii: " ") || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "\t")
    }
    while true {
      rest = rest.drop(while: isSeparator)
      guard let first = rest.first else { return false }
      if first == UInt8(ascii: "*") { return true }
      rest = opaque(rest)
      guard rest.first == UInt8(ascii: "\""),
        let end = rest.dropFirst().firstIndex(of: UInt8(ascii: "\""))
      else { return false }
      if rest[...end].elementsEqual(wanted) { return true }
      rest = rest[end...].dropFirst()
    }
  }

  /// The tag without its mark of weakness.
  private static func opaque(_ tag: Substring.UTF8View) -> Substring.UTF8View {
    tag.starts(with: "W/".utf8) ? tag.dropFirst(2) : tag
  }
}
